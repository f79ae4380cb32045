# SPDX-License-Identifier: Apache-2.0
"""What attention is, in plain loops over Python's floats: the tables of docs/commands/attention.md.

Nothing here comes from the library, so that each can be held against the other.
"""

import math
import struct
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


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


TOP = 3  # unless the option topk says how many
PARAMETERS = {"bias", "slopes", "t5", "sink", "score_w", "score_v", "shaw_k", "shaw_v"}
BY_DISTANCE = {}  # name: what the tensor adds at a distance, and its derivatives (see by_distance)


class Outputs(dict):
    def __init__(self, t, top):
        (B, T, H, D), (_, S, G, Dv) = t["q"].shape, t["v"].shape
        super().__init__(o=zeros(B, T, H, Dv), lse=zeros(B, H, T, value=-INF), entropy=zeros(B, H, T),
                         max=zeros(B, H, T, value=-INF), distance=zeros(B, H, T), weights=zeros(B, H, T, S),
                         dq=zeros(B, T, H, D), dk=zeros(B, S, G, D), dv=zeros(B, S, G, Dv), topk_index=zeros(B, H, T, top, value=-1), topk_weight=zeros(B, H, T, top),
                         column_mass=zeros(B, H, S), dropout_keep=zeros(B, H, T, S))
        for name in (PARAMETERS | set(BY_DISTANCE)) & set(t):
            self["d" + name] = zeros(*t[name].shape)


def rounded(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def t5_bucket(distance, buckets, options):
    """Raffel et al. 2020, in the float32 of the published code."""
    if options.get("t5-causal"):
        start, n = 0, max(-distance, 0)
    else:
        buckets //= 2
        start, n = (buckets if distance > 0 else 0), abs(distance)
    exact = buckets // 2
    if n < exact:
        return start + n
    ratio = rounded(rounded(math.log(rounded(n / exact))) /
                    rounded(math.log(options.get("t5-max-distance", 128) / exact)))
    return start + min(buckets - 1, exact + math.floor(rounded(ratio * (buckets - exact))))


@dataclass
class Site:
    """One score."""
    s: Sequence
    h: int
    i: int
    j: int
    p: int


def parts_of(t, options, site):
    """What is added to a score: the tensor, the term, and its derivatives by numbers of the tensor."""
    s, h, distance = site.s, site.h, site.j - site.p

    def linear(name, factor, place):
        return name, factor * t[name].at(*place), [(place, factor)]

    if "bias" in t:
        yield linear("bias", 1, (s.batch, h, s.query + site.i, s.key + site.j))
    if "slopes" in t:
        yield linear("slopes", -abs(distance), (h,))
    if "t5" in t:
        yield linear("t5", 1, (t5_bucket(distance, t["t5"].shape[0], options), h))
    for name, term in BY_DISTANCE.items():
        if name in t:
            yield name, *term(t[name], abs(distance), h)


def derivatives_of(t, options, site):
    """Of a score, by each number of a tensor that is added to it."""
    for name, _, derivatives in parts_of(t, options, site):
        for place, derivative in derivatives:
            yield name, place, derivative


def by_distance(function):
    """f(tensor, |p - j|, head): a term of the score, and its derivatives by numbers of the tensor of that name."""
    BY_DISTANCE[function.__name__] = function
    return function


@by_distance
def kerple(r, distance, h):
    """Chi et al. 2022, logarithmic form; numbers below .01 count as .01."""
    r1, r2 = max(r.at(0, h), 0.01), max(r.at(1, h), 0.01)
    log = math.log(1 + r2 * distance)
    return -r1 * log, [((0, h), -log), ((1, h), -r1 * distance / (1 + r2 * distance))]


@by_distance
def kerple_power(r, distance, h):
    """Chi et al. 2022, power form; numbers below .01 count as .01, exponents above 2 as 2."""
    r1, r2 = max(r.at(0, h), 0.01), min(max(r.at(1, h), 0.01), 2.0)
    power = distance**r2
    return -r1 * power, [((0, h), -power), ((1, h), -r1 * power * math.log(distance) if distance else 0.0)]


def shaw_row(t, options, name, distance):
    """Shaw et al. 2018: the row of a table for j - p, and where it stands."""
    clip = t[name].shape[0] // 2
    n = max(-clip, min(clip, distance if options.get("order") == "j-i" else -distance)) + clip
    return t[name].row(n), n


def turned(row, position, pairs, way=1):
    """Su et al. 2021; way -1 turns back."""
    if not pairs:
        return row
    half, made = len(row) // 2, list(row)
    for c in range(half):
        a, b = (c, c + half) if pairs == "halves" else (2 * c, 2 * c + 1)
        angle = way * position / 10000 ** (2 * c / len(row))
        made[a] = row[a] * math.cos(angle) - row[b] * math.sin(angle)
        made[b] = row[a] * math.sin(angle) + row[b] * math.cos(angle)
    return made


def product_of(t, options, h, q, k):
    """What is scaled, and its gradients towards q, k and the score's weights."""
    kind = options.get("score", "dot")
    if kind == "concat":
        w = t["score_w"].row(h)
        return dot(w, [*q, *k]), w[:len(q)], w[len(q):], [*q, *k]
    if kind == "l2":
        apart = [x - y for x, y in zip(q, k)]
        return -dot(apart, apart), [-2 * x for x in apart], [2 * x for x in apart], None
    if kind == "additive":
        v, t_ = t["score_v"].row(h), [math.tanh(x + y) for x, y in zip(q, k)]
        slopes = [x * (1 - y * y) for x, y in zip(v, t_)]
        return dot(v, t_), slopes, slopes, t_
    if kind == "cosine":
        across, own, other = math.sqrt(dot(q, q) * dot(k, k)), dot(q, q), dot(k, k)
        if across == 0:
            return 0.0, [0.0] * len(q), [0.0] * len(k), None
        c = dot(q, k) / across
        return (c, [y / across - c * x / own for x, y in zip(q, k)],
                [x / across - c * y / other for x, y in zip(q, k)], None)
    return dot(q, k), k, q, None


def score_of(t, options, site, product, keys):
    """The score, and its derivative by the product of q and k, in a row that keeps so many keys."""
    auto = 1 / math.sqrt(t["q"].shape[3]) if options.get("score", "dot") in ("dot", "l2") else 1.0
    cap, slope = options.get("softcap", 0), options.get("scale", auto)
    if options.get("log-n-scale"):  # Su 2021; Chiang and Cholak 2022
        slope *= math.log(keys) / math.log(options["log-n-scale"])
    scaled = product * slope
    if cap:
        slope *= 1 - math.tanh(scaled / cap) ** 2
        scaled = cap * math.tanh(scaled / cap)
    return scaled + sum(term for _, term, _ in parts_of(t, options, site)), slope


def weights_of(options, scores, sink):
    """Weights, their derivatives (of softmax: none), log-sum-exp, and the sink's weight."""
    norm = options.get("norm", "softmax")
    if norm == "none":
        return dict(scores), {j: 1.0 for j in scores}, -INF, 0.0
    if norm == "sigmoid":
        weights = {j: 1 / (1 + math.exp(-x)) for j, x in scores.items()}
        return weights, {j: w * (1 - w) for j, w in weights.items()}, -INF, 0.0
    largest = max(sink, *scores.values())
    total = sum(math.exp(x - largest) for x in [sink, *scores.values()])
    weights = {j: math.exp(x - largest) / total for j, x in scores.items()}
    return weights, None, largest + math.log(total), math.exp(sink - largest) / total


def observe(out, at, p, scores, weights, top):
    """What is seen of one query at position p."""
    out["max"].set(at, max(scores.values()))
    out["entropy"].set(at, -sum(w * math.log(w) for w in weights.values() if w > 0))
    out["distance"].set(at, sum(w * abs(p - j) for j, w in weights.items()))
    for n, j in enumerate(sorted(weights, key=lambda j: (-scores[j], j))[:top]):
        out["topk_index"].set((*at, n), j)
        out["topk_weight"].set((*at, n), weights[j])


def row(t, options, out, s, h, i):
    """One query of one head, forward and (where do is given) backward."""
    group, p = h * t["k"].shape[2] // t["q"].shape[2], position(options, s, i)
    query, at = (s.batch, s.query + i, h), (s.batch, h, s.query + i)
    key = lambda j: (s.batch, s.key + j, group)  # noqa: E731
    sink = t["sink"].values[h] if "sink" in t else -INF
    out["lse"].set(at, sink)
    sites = [Site(s, h, i, j, p) for j in range(s.keys) if keeps(t, options, s, h, i, j)]
    dlse = t["dlse"].at(*at) if "do" in t and "dlse" in t else 0.0
    if not sites:
        if "sink" in t and dlse:
            out["dsink"].add((h,), dlse)
        return
    pairs = options.get("rotary")
    q = turned(t["q"].row(*query), p, pairs)
    ks = {site.j: turned(t["k"].row(*key(site.j)), site.j, pairs) for site in sites}
    products = {j: product_of(t, options, h, q, k) for j, k in ks.items()}
    vs = {site.j: t["v"].row(*key(site.j)) for site in sites}
    for j in ks:
        if "shaw_k" in t:  # a key becomes k + a; q is turned, and neither made of length 1 nor weighed
            a, (product, dq, *rest) = shaw_row(t, options, "shaw_k", j - p)[0], products[j]
            products[j] = (product + dot(q, a), add(dq, a), *rest)
        if "shaw_v" in t:
            vs[j] = add(vs[j], shaw_row(t, options, "shaw_v", j - p)[0])
    scored = {site.j: score_of(t, options, site, products[site.j][0], len(sites)) for site in sites}
    weights, slopes, lse, sink_weight = weights_of(options, {j: x for j, (x, _) in scored.items()}, sink)
    probability = options.get("dropout", 0.0)
    factor = {j: 0.0 if probability and drops(probability, options.get("seed", 0), s.number, h, i, j)
              else 1 / (1 - probability) for j in weights}
    out["lse"].set(at, lse)
    observe(out, at, p, {j: x for j, (x, _) in scored.items()}, weights, options.get("topk", TOP))
    for j, w in weights.items():
        out["column_mass"].add((s.batch, h, s.key + j), w)
        out["dropout_keep"].set((*at, s.key + j), 1 if factor[j] else 0)
        out["weights"].set((*at, s.key + j), w)
        out["o"].add_row(query, vs[j], w * factor[j])
    if "do" not in t:
        return
    d_o = t["do"].row(*query)
    dp = {j: factor[j] * dot(d_o, vs[j]) for j in weights}
    delta = sum(weights[j] * dp[j] for j in weights) - dlse
    if "sink" in t:
        out["dsink"].add((h,), -sink_weight * delta)
    for site in sites:
        j = site.j
        ds = weights[j] * (dp[j] - delta) if slopes is None else slopes[j] * dp[j]
        out["dv"].add_row(key(j), d_o, weights[j] * factor[j])
        out["dq"].add_row(query, turned(products[j][1], p, pairs, -1), scored[j][1] * ds)
        out["dk"].add_row(key(j), turned(products[j][2], j, pairs, -1), scored[j][1] * ds)
        for name in {"score_v", "score_w"} & set(t):
            out["d" + name].add_row((h,), products[j][3], scored[j][1] * ds)
        if "shaw_k" in t:
            out["dshaw_k"].add_row((shaw_row(t, options, "shaw_k", j - p)[1],), q, scored[j][1] * ds)
        if "shaw_v" in t:
            out["dshaw_v"].add_row((shaw_row(t, options, "shaw_v", j - p)[1],), d_o, weights[j] * factor[j])
        for name, place, derivative in derivatives_of(t, options, site):
            out["d" + name].add(place, derivative * ds)


def attention(t, **options):
    """Everything that OUT may hold, by name."""
    out = Outputs(t, options.get("topk", TOP))
    for s in sequences(t):
        for h in range(t["q"].shape[2]):
            for i in range(s.queries):
                row(t, options, out, s, h, i)
    if options.get("norm", "softmax") != "softmax":
        for name in ("lse", "entropy", "distance"):
            del out[name]
    return out
