# SPDX-License-Identifier: Apache-2.0
"""The functions that must be fused, each as a user would write it, for torch and for numpy. `Function.score` and
`.mask` are called with symbols by fovea, and by the definition with whole tensors, whose axes are b, h, q and kv."""

import math

import numpy as np
from support import Problem

B, H, T, S = 2, 4, 70, 90
SIDE = 8  # of images


class Function:
    """A score_mod and a mask_mod, or one of them, and the tables that learn."""

    def __init__(self, score=None, mask=None, learned=()):
        self.score, self.mask, self.learned = score, mask, tuple(learned)


class Numpy:
    """What functions use of numpy. `table` makes of an array what they capture: fovea.captured, or, for the
    definition, the array itself."""

    def __init__(self, table=lambda array: array):
        self.table = self.learned = table
        for name in ("where", "exp2", "log", "tanh", "sin", "cos", "sqrt", "arange"):
            setattr(self, name, getattr(np, name))

    def to_int(self, x):
        return x.astype(int)

    # What numpy has not, symbols have as methods.

    def gelu(self, x):
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) if isinstance(x, np.ndarray) else x.gelu()

    def sigmoid(self, x):
        return 1 / (1 + np.exp(-x)) if isinstance(x, np.ndarray) else x.sigmoid()

    def relu(self, x):
        return np.maximum(x, 0)

    def silu(self, x):
        return x * self.sigmoid(x)

    def softplus(self, x):
        return np.log1p(np.exp(x))


class Torch:
    """What functions use of torch."""

    def __init__(self):
        import torch

        self.torch = torch
        for name in ("where", "exp2", "log", "tanh", "sin", "cos", "sqrt", "sigmoid", "relu", "arange"):
            setattr(self, name, getattr(torch, name))
        for name in ("gelu", "silu", "softplus"):
            setattr(self, name, getattr(torch.nn.functional, name))

    def table(self, array):
        return self.torch.tensor(array)

    def learned(self, array):
        return self.torch.tensor(array, dtype=self.torch.float64, requires_grad=True)

    def to_int(self, x):
        return x.to(self.torch.int32)


class Draw:
    """Random tables of a library, the same for each: numbers that learn, and whole numbers."""

    def __init__(self, seed, library):
        self.random = np.random.default_rng(seed)
        self.library = library

    def normal(self, *shape):
        return self.library.learned(self.random.standard_normal(shape))

    def whole(self, high, *shape):
        return self.library.table(self.random.integers(high, size=shape))


class Documents:
    """Whether a query and a key are of one document."""

    def __init__(self, library):
        random = np.random.default_rng(3)
        self.of_query, self.of_key = (library.table(np.sort(random.integers(5, size=n))) for n in (T, S))

    def __call__(self, b, h, q, kv):
        return self.of_query[q] == self.of_key[kv]


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return abs(q - kv) <= 11


def natten(b, h, q, kv):
    q_y, q_x, k_y, k_x = q // SIDE, q % SIDE, kv // SIDE, kv % SIDE
    y, x = q_y.clip(2, SIDE - 3), q_x.clip(2, SIDE - 3)
    return (abs(k_y - y) <= 2) & (abs(k_x - x) <= 2)


def natten_tiled(b, h, q, kv):
    def place(n):
        tile, rest = n // 16, n % 16
        return tile // 2 * 4 + rest // 4, tile % 2 * 4 + rest % 4

    (q_y, q_x), (k_y, k_x) = place(q), place(kv)
    return (abs(q_y - k_y) <= 2) & (abs(q_x - k_x) <= 2)


def natten_morton(b, h, q, kv):
    def place(n):
        def every_second(x):
            x = x & 0x55
            x = (x | (x >> 1)) & 0x33
            return (x | (x >> 2)) & 0x0F

        return every_second(n >> 1), every_second(n)

    (q_y, q_x), (k_y, k_x) = place(q), place(kv)
    return (abs(q_y - k_y) <= 2) & (abs(q_x - k_x) <= 2)


def block_diffusion_of(library):
    half = 45

    def block_diffusion(b, h, q, kv):
        noisy_q, noisy_k = q < half, kv < half
        block_q = library.where(noisy_q, q // 8, (q - half) // 8)
        block_k = library.where(noisy_k, kv // 8, (kv - half) // 8)
        same = (block_q == block_k) & (noisy_q == noisy_k)
        offset = (block_q > block_k) & ~noisy_k & noisy_q
        return same | offset | ((block_q >= block_k) & ~noisy_k & ~noisy_q)

    return block_diffusion


def shared_prefix(b, h, q, kv):
    return (kv < 20) | ((q // 25 == (kv - 20) // 25) & (kv >= 20))


def ancestors_of(parents):
    """[n, n]: whether one node of a tree is above another, or is it."""
    above = np.eye(len(parents), dtype=bool)
    for n, parent in enumerate(parents):
        above[n] |= above[parent]
    return above


def masks(draw):
    library, document = draw.library, Documents(draw.library)
    offsets = library.table(np.array([0, 17, 40, 61, 1000]))
    lengths, prefix = library.table(np.array([60, 90])), library.table(np.array([9, 30]))
    ancestors = library.table(ancestors_of([0, 0, 0, 1, 1, 2, 2, 5]))
    image_begin, image_end = draw.whole(40, T), draw.whole(50, T)
    yield "causal", Function(mask=causal)
    yield "causal by infinity", Function(score=lambda s, b, h, q, kv: library.where(q >= kv, s, -math.inf))
    yield "causal by infinity, float", Function(score=lambda s, b, h, q, kv: library.where(q >= kv, s, float("-inf")))
    yield "window", Function(mask=lambda b, h, q, kv: (q - kv <= 9) & (q >= kv))
    yield "window of both sides", Function(mask=window)
    yield "dilated", Function(mask=lambda b, h, q, kv: ((q - kv) % 3 == 0) & (q >= kv))
    yield "prefix", Function(mask=lambda b, h, q, kv: (kv < prefix[b]) | (q >= kv))
    yield "padding", Function(mask=lambda b, h, q, kv: kv < lengths[b])
    yield "documents", Function(mask=lambda b, h, q, kv: document(b, h, q, kv) & causal(b, h, q, kv))
    yield "documents by offsets", Function(
        mask=lambda b, h, q, kv: (q - offsets[document.of_query[q]] >= kv - offsets[document.of_key[kv]])
        & document(b, h, q, kv))
    yield "global tokens", Function(mask=lambda b, h, q, kv: (kv < 3) | (q < 2) | window(b, h, q, kv))
    yield "sink tokens", Function(mask=lambda b, h, q, kv: causal(b, h, q, kv) & ((kv < 4) | (q - kv < 16)))
    yield "chunks", Function(mask=lambda b, h, q, kv: (q // 16 == kv // 16) & (q >= kv))
    yield "block diffusion", Function(mask=block_diffusion_of(library))
    yield "shared prefix", Function(mask=shared_prefix)
    yield "tree", Function(mask=lambda b, h, q, kv: ancestors[q % 8, kv % 8])
    yield "image intervals", Function(mask=lambda b, h, q, kv: (kv >= image_begin[q]) & (kv < 40 + image_end[q]))
    yield "natten", Function(mask=natten)
    yield "natten, tiled", Function(mask=natten_tiled)
    yield "natten, Morton", Function(mask=natten_morton)
    yield "sliding tiles", Function(mask=lambda b, h, q, kv: abs(q // 8 - kv // 8) <= 1)
    yield "products and sums of conditions", Function(
        mask=lambda b, h, q, kv: ~((q >= kv) * (kv > 2)) & ~((q < kv - 9) + (kv < 1))
        & ((h < 9) + (kv > 0) == (kv == kv)))
    yield "by head", Function(mask=lambda b, h, q, kv: library.where(h < 2, q - kv < 8 * (h + 1), kv % (h + 1) == 0))


def scores_by_distance(draw):
    normal, library = draw.normal, draw.library
    yield "relative", Function(score=lambda s, b, h, q, kv: s + (q - kv))
    slopes = normal(H)
    yield "powers of a number", Function(
        score=lambda s, b, h, q, kv: s - 2.0 ** -(h + 1) * abs(q - kv) + s * 2.0 ** ((kv - q) // 45))
    yield "alibi", Function(score=lambda s, b, h, q, kv: s + library.exp2(-((h + 1) * 8.0 / H)) * (kv - q))
    yield "alibi, learned", Function(score=lambda s, b, h, q, kv: s - slopes[h] * abs(q - kv), learned=[slopes])
    t5 = normal(32, H)

    def t5_bucket(s, b, h, q, kv):
        distance = abs(q - kv)
        far = 8 + library.to_int(library.log(distance.clip(min=1) / 8) / math.log(128 / 8) * 8)
        bucket = library.where(distance < 8, distance, far.clip(max=15)) + library.where(kv > q, 16, 0)
        return s + t5[bucket, h]

    yield "t5", Function(score=t5_bucket, learned=[t5])
    by_distance = normal(H, max(T, S))
    yield "by distance", Function(score=lambda s, b, h, q, kv: s + by_distance[h, abs(q - kv)],
                                  learned=[by_distance])
    clamped = normal(17)
    yield "clamped distance", Function(score=lambda s, b, h, q, kv: s + clamped[(q - kv).clip(-8, 8) + 8],
                                       learned=[clamped])


def scores_by_table(draw):
    normal, whole = draw.normal, draw.whole
    of_key, of_query = normal(B, S), normal(H, T)
    yield "of the key", Function(score=lambda s, b, h, q, kv: s + of_key[b, kv], learned=[of_key])
    yield "of the query", Function(score=lambda s, b, h, q, kv: s + of_query[h, q], learned=[of_query])
    shift = whole(20, T)
    table = normal(S + 20)
    yield "offset of the query", Function(score=lambda s, b, h, q, kv: s + table[kv + shift[q]], learned=[table])
    for shape, read in (((T, S), lambda x, b, h, q, kv: x[q, kv]), ((H, T, S), lambda x, b, h, q, kv: x[h, q, kv]),
                        ((B, H, T, S), lambda x, b, h, q, kv: x[b, h, q, kv])):
        bias = normal(*shape)
        yield f"bias {list(shape)}", Function(
            score=lambda s, b, h, q, kv, bias=bias, read=read: s + read(bias, b, h, q, kv), learned=[bias])
    turned = normal(S, T)
    yield "transposed bias", Function(score=lambda s, b, h, q, kv: s + turned[kv, q], learned=[turned])
    both = normal(S, S)
    yield "a bias read twice", Function(score=lambda s, b, h, q, kv: s + both[q, kv] * both[kv, q], learned=[both])


def other_scores(draw):
    normal, whole, library, document = draw.normal, draw.whole, draw.library, Documents(draw.library)
    weight = normal(B, H, T)
    yield "times a weight", Function(score=lambda s, b, h, q, kv: s * weight[b, h, q], learned=[weight])
    cap = library.learned(np.array(3.0))
    yield "softcap", Function(score=lambda s, b, h, q, kv: cap * library.tanh(s / cap), learned=[cap])
    distance, edges = whole(7, B, T, S), whole(5, B, T, S)
    graph, edge = normal(H, 7), normal(H, 5)
    yield "graphormer", Function(
        score=lambda s, b, h, q, kv: s + graph[h, distance[b, q, kv]] + edge[h, edges[b, q, kv]],
        learned=[graph, edge])
    yield "log of gelu", Function(score=lambda s, b, h, q, kv: library.log(library.gelu(s) + 1))
    yield "activations", Function(
        score=lambda s, b, h, q, kv: library.sigmoid(s) * library.relu(s) + library.silu(s)
        - library.sqrt(library.softplus(s)) + (s**2).clip(max=2) + library.sin(s) * library.cos(s))
    slopes, both = normal(H), normal(T, S)
    yield "chain", Function(
        score=lambda s, b, h, q, kv: 5 * library.tanh((s * weight[b, h, q] + slopes[h] * (kv - q)) / 5) + both[q, kv],
        mask=lambda b, h, q, kv: document(b, h, q, kv) | window(b, h, q, kv), learned=[weight, slopes, both])
    interval = library.table(np.array(20))
    yield "a captured number", Function(mask=lambda b, h, q, kv: kv < interval + q)


def functions(library):
    """name -> Function of all, over B, H, T and S."""
    return {name: function for seed, some in enumerate((masks, scores_by_distance, scores_by_table, other_scores))
            for name, function in some(Draw(seed, library))}


def places(library):
    """b, h, q and kv of every score."""
    return [library.arange(n).reshape([-1 if axis == m else 1 for m in range(4)])
            for axis, n in enumerate((B, H, T, S))]


def problem(dtype=np.float64):
    """Random arrays of these sizes, in groups of two heads."""
    return Problem(1, dtype, (B, T, S, H, 2, 8, 6))
