# SPDX-License-Identifier: Apache-2.0
"""What attention is, in plain loops over Python's floats: the table of docs/commands/attention.md."""

import math
from dataclasses import dataclass

from tensor_files import Tensor

INF = math.inf
OPEN = -1


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011)."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & 0xFFFFFFFF,
                   (a >> 32) ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def halves(x):
    return x & 0xFFFFFFFF, x >> 32


def drops(probability, seed, sample, head, i, j):
    a = philox((0, 0, 0, 1), halves(seed))
    b = philox((*halves(sample), head, a[2]), a[:2])
    w = philox((i, j // 8, b[2], b[3]), b[:2])
    bits = w[j % 8 // 2] >> (16 * (j % 2)) & 0xFFFF
    threshold = math.floor(65536 * probability)
    if bits != threshold:
        return bits < threshold
    tie = philox((i, j, b[2], ~b[3] & 0xFFFFFFFF), b[:2])[0]
    return tie < math.floor((65536 * probability - threshold) * 2**32)


@dataclass
class Sequence:
    number: int
    batch: int
    query: int  # rows of query 0 and key 0
    key: int
    queries: int
    keys: int


def sequences(t):
    batch, rows = t["q"].shape[:2]
    keys = t["k"].shape[1]
    if "query_offsets" in t:
        q, k = t["query_offsets"].values, t["key_offsets"].values
        return [Sequence(n, 0, q[n], k[n], q[n + 1] - q[n], k[n + 1] - k[n]) for n in range(len(q) - 1)]
    length = lambda name, b, most: min(t[name].values[b], most) if name in t else most  # noqa: E731
    return [Sequence(b, b, 0, 0, length("query_lengths", b, rows), length("key_lengths", b, keys))
            for b in range(batch)]


def in_window(distance, left, right):
    return (left == OPEN or distance >= -left) and (right == OPEN or distance <= right)


def position(options, s, i):
    return i if options.get("causal") == "top-left" else i + s.keys - s.queries


def keeps(t, options, s, h, i, j):
    p = position(options, s, i)
    rate, stride = options.get("dilation", 1), options.get("strided", 1)
    if options.get("causal") and j > p:
        return False
    if (j - p) % rate != 0:
        return False
    m = (j - p) // rate
    if not in_window(m, *options.get("window", (OPEN, OPEN))):
        return False
    if "window" in t and not in_window(m, *t["window"].row(h)):
        return False
    if not (abs(j - p) < stride or (j - p) % stride == 0):
        return False
    row, column = s.query + i, s.key + j
    if "query_segments" in t and t["query_segments"].at(s.batch, row) != t["key_segments"].at(s.batch, column):
        return False
    if "keep" in t and not t["keep"].at(s.batch, h, row, column):
        return False
    return not ("drop" in t and t["drop"].at(s.batch, h, row, column))


def zeros(*shape, value=0.0):
    return Tensor("F64", shape, [value] * math.prod(shape))


def add(tensor, place, values, factor=1.0):
    """tensor[place] += factor values, along the last axis."""
    offset = 0
    for size, i in zip(tensor.shape, place):
        offset = offset * size + i
    width = tensor.shape[-1]
    for n, x in enumerate(values):
        tensor.values[offset * width + n] += factor * x


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


class Outputs(dict):
    def __init__(self, t):
        (B, T, H, D), (_, S, G, Dv) = t["q"].shape, t["v"].shape
        super().__init__(o=zeros(B, T, H, Dv), lse=zeros(B, H, T, value=-INF), entropy=zeros(B, H, T),
                         max=zeros(B, H, T, value=-INF), distance=zeros(B, H, T), weights=zeros(B, H, T, S),
                         dq=zeros(B, T, H, D), dk=zeros(B, S, G, D), dv=zeros(B, S, G, Dv))
        for name in {"slopes", "sink"} & set(t):
            self["d" + name] = zeros(H)


def row(t, options, out, s, h, i):
    """One query of one head, forward and (where do is given) backward."""
    H, D = t["q"].shape[2:]
    group = h * t["k"].shape[2] // H
    scale = options.get("scale", 1 / math.sqrt(D))
    p = position(options, s, i)
    query = (s.batch, s.query + i, h)
    key = lambda j: (s.batch, s.key + j, group)  # noqa: E731
    kept = [j for j in range(s.keys) if keeps(t, options, s, h, i, j)]
    at = (s.batch * H + h) * out["lse"].shape[2] + s.query + i  # in [B, H, T]
    sink = t["sink"].values[h] if "sink" in t else -INF
    out["lse"].values[at] = sink
    if not kept:
        return
    slope = t["slopes"].values[h] if "slopes" in t else 0.0
    scores = {j: scale * dot(t["q"].row(*query), t["k"].row(*key(j))) - slope * abs(p - j) for j in kept}
    norm = options.get("norm", "softmax")
    largest = max(sink, *scores.values())
    total = sum(math.exp(x - largest) for x in [sink, *scores.values()])
    weigh, slope_of = {
        "softmax": (lambda x: math.exp(x - largest) / total, None),
        "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda w: w * (1 - w)),
        "none": (lambda x: x, lambda w: 1.0)}[norm]
    weights = {j: weigh(x) for j, x in scores.items()}
    probability = options.get("dropout", 0.0)
    factor = {j: 0.0 if probability and drops(probability, options.get("seed", 0), s.number, h, i, j)
              else 1 / (1 - probability) for j in kept}
    out["lse"].values[at] = largest + math.log(total)
    out["max"].values[at] = max(scores.values())
    out["entropy"].values[at] = -sum(w * math.log(w) for w in weights.values() if w > 0)
    out["distance"].values[at] = sum(w * abs(p - j) for j, w in weights.items())
    for j, w in weights.items():
        out["weights"].values[at * out["weights"].shape[3] + s.key + j] = w
        add(out["o"], query, t["v"].row(*key(j)), w * factor[j])
    if "do" not in t:
        return
    d_o = t["do"].row(*query)
    dp = {j: factor[j] * dot(d_o, t["v"].row(*key(j))) for j in kept}
    delta = sum(weights[j] * dp[j] for j in kept)
    if "sink" in t:
        out["dsink"].values[h] -= math.exp(sink - largest) / total * delta
    for j in kept:
        ds = weights[j] * (dp[j] - delta) if norm == "softmax" else slope_of(weights[j]) * dp[j]
        add(out["dq"], query, t["k"].row(*key(j)), scale * ds)
        add(out["dk"], key(j), t["q"].row(*query), scale * ds)
        add(out["dv"], key(j), d_o, weights[j] * factor[j])
        if "slopes" in t:
            out["dslopes"].values[h] -= ds * abs(p - j)


def attention(t, **options):
    """Everything that OUT may hold, by name."""
    out = Outputs(t)
    for s in sequences(t):
        for h in range(t["q"].shape[2]):
            for i in range(s.queries):
                row(t, options, out, s, h, i)
    if options.get("norm", "softmax") != "softmax":
        for name in ("lse", "entropy", "distance"):
            del out[name]
    return out
