# SPDX-License-Identifier: Apache-2.0
"""Traced functions, for peer_python.py: what flex_attention is given, and what it is compared with."""
import functools
import resource
import statistics
import time

LEAST, MOST = 3, 200  # calls of what has no peer


class Example:
    """A score_mod or a mask_mod, the tensors that learn, and PyTorch's ways to the same with a gradient:
    matrices T x S, and its own causal mask."""

    def __init__(self, score=None, mask=None, learned=(), matrix=None, options=None):
        self.score, self.mask, self.learned = score, mask, list(learned)
        self.matrix = matrix  # of what is added, or of what is kept
        self.options = options  # what scaled_dot_product_attention has for it

    def ways(self, torch, q, k, v):
        sdpa = torch.nn.functional.scaled_dot_product_attention
        scale = q.shape[-1] ** -0.5
        kept = None if self.learned else self.matrix()

        def eager():
            scores = q @ k.transpose(-1, -2) * scale
            scores = scores + self.matrix() if kept is None else scores.masked_fill(~kept, -torch.inf)
            return scores.softmax(-1) @ v

        yield eager
        yield lambda: sdpa(q, k, v, attn_mask=self.matrix() if kept is None else kept)
        if self.options:
            yield lambda: sdpa(q, k, v, **self.options)


def examples(torch, H, T):
    """name -> Example, made when it is asked for."""
    i, j = torch.arange(T)[:, None], torch.arange(T)
    causal = i >= j
    ids = torch.arange(T) // (T // 4)

    def learned(*shape):
        return torch.randn(*shape, requires_grad=True)

    def alibi():
        slopes, far = learned(H), (i - j).abs()
        return Example(lambda s, b, h, q, kv: s - slopes[h] * (q - kv).abs(), learned=[slopes],
                       matrix=lambda: -slopes[:, None, None] * far)

    def relative():
        table, at = learned(H, 2 * T), i - j + T
        return Example(lambda s, b, h, q, kv: s + table[h, q - kv + T], learned=[table], matrix=lambda: table[:, at])

    def bias():
        dense = learned(H, T, T)
        return Example(lambda s, b, h, q, kv: s + dense[h, q, kv], learned=[dense], matrix=lambda: dense)

    def graphormer():
        table, distance = learned(H, 32), torch.randint(32, (T, T))
        return Example(lambda s, b, h, q, kv: s + table[h, distance[q, kv]], learned=[table],
                       matrix=lambda: table[:, distance])

    def of_causal():
        return Example(mask=lambda b, h, q, kv: q >= kv, matrix=lambda: causal, options={"is_causal": True})

    def documents():
        both = causal & (ids[:, None] == ids)
        return Example(mask=lambda b, h, q, kv: (q >= kv) & (ids[q] == ids[kv]), matrix=lambda: both)

    return {"alibi": alibi, "relative": relative, "bias": bias, "graphormer": graphormer, "causal": of_causal,
            "documents": documents}


def forty_operations(table):
    """A score_mod of so many; the arguments are its symbols."""
    def score(s, b, h, q, kv):
        for n in range(9):
            s = (s + table[h, kv]) * (n + 0.5) - q  # four operations, and a read that is one for all
        return abs(s + (q - kv)) * 0.5
    return score


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


class FlexRows:
    """Each method makes two calls, or measures one thing alone and returns what it found."""

    torch = fovea = None

    def _example(self, name, B, H, T, D):
        torch = self.torch
        example = examples(torch, H, T)[name]()
        q, k, v = (torch.randn(B, H, T, D, requires_grad=True) for _ in range(3))
        mask = example.mask and self.fovea.torch.create_block_mask(example.mask, None, None, T, T)
        return example, (q, k, v), mask

    def _trained(self, call, inputs, do):
        return lambda: self.torch.autograd.grad(call(), inputs, do)

    def flex(self, name, B=1, H=8, T=2048, D=64):
        """Forward and backward, beside the fastest of PyTorch's ways."""
        example, operands, mask = self._example(name, B, H, T, D)
        inputs, do = [*operands, *example.learned], self.torch.randn(B, H, T, D)
        best, least = None, float("inf")
        for way in example.ways(self.torch, *operands):
            call = self._trained(way, inputs, do)
            call()
            seconds = min(timed(call) for _ in range(2))
            if seconds < least:
                best, least = call, seconds
        ours = self.fovea.torch.flex_attention
        return best, self._trained(lambda: ours(*operands, example.score, mask), inputs, do)

    def flex_forward(self, name, B=1, H=8, T=2048, D=64):
        """Beside the compiled flex_attention of PyTorch."""
        torch = self.torch
        from torch.nn.attention import flex_attention as theirs
        example, operands, mask = self._example(name, B, H, T, D)
        operands = [x.detach() for x in operands]  # theirs refuses what may need a gradient
        block = example.mask and theirs.create_block_mask(example.mask, None, None, T, T, device="cpu")
        compiled = torch.compile(theirs.flex_attention, dynamic=False)
        calls = ((compiled, block), (self.fovea.torch.flex_attention, mask))
        return [torch.no_grad()(lambda f=f, m=m: f(*operands, score_mod=example.score, block_mask=m)) for f, m in calls]

    def flex_ready_made(self, name, B=1, H=8, T=2048, D=64):
        """Forward and backward, beside our part that computes the same: this is the first of the two."""
        torch, fovea = self.torch, self.fovea
        example, operands, mask = self._example(name, B, H, T, D)
        rows = [x.transpose(1, 2) for x in operands]
        parts = {"alibi": lambda: {"slopes": example.learned[0]}, "bias": lambda: {"bias": example.learned[0][None]},
                 "causal": lambda: {"causal": True}}[name]
        do = torch.randn(B, H, T, D)
        inputs = [*operands, *example.learned]
        calls = (lambda: fovea.torch.attention(*rows, **parts()).transpose(1, 2),
                 lambda: fovea.torch.flex_attention(*operands, example.score, mask))
        return [self._trained(call, inputs, do) for call in calls]

    def flex_window(self, seconds, H=8, D=64, window=256):
        """Forward and backward under a causal window, at lengths of a factor of four: time and memory."""
        torch, flex = self.torch, self.fovea.torch.flex_attention
        found, lengths = {}, (1024, 4096, 16384, 65536)
        for T in lengths:
            q, k, v = (torch.randn(1, H, T, D, requires_grad=True) for _ in range(3))
            do = torch.randn(1, H, T, D)
            mask = self.fovea.torch.create_block_mask(
                lambda b, h, q, kv: (q >= kv) & (q - kv < window), None, None, T, T)
            call = self._trained(lambda: flex(q, k, v, None, mask), (q, k, v), do)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            call()
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            found[f"{T} tokens"] = _median(call, seconds / len(lengths))
            found[f"{T} tokens MiB"] = (most - before) / 1024
        return found

    def tracing(self, seconds):
        """A score_mod of 40 operations, by the front end of numpy and by that of torch."""
        from fovea import _symbols as of_numpy
        from fovea.torch import _symbols as of_torch

        table = self.torch.zeros(8, 64)
        calls = {"torch": functools.partial(of_torch.TracedFunction, "score_mod", forty_operations(table)),
                 "numpy": functools.partial(of_numpy.TracedFunction, "score_mod",
                                            forty_operations(self.fovea.captured(table.numpy())))}
        return {name: _median(call, seconds / len(calls)) for name, call in calls.items()}

    def block_mask(self, seconds, T=65536):
        """create_block_mask of causal documents, and the lists of its blocks."""
        ids = self.torch.arange(T) // 1000
        create = functools.partial(self.fovea.torch.create_block_mask,
                                   lambda b, h, q, kv: (q >= kv) & (ids[q] == ids[kv]), None, None, T, T)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = {"mask": _median(create, seconds / 2),
                 "with its lists": _median(lambda: create().kv_indices, seconds / 2)}
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {**found, "MiB": (most - before) / 1024}


def _median(call, seconds):
    times, end = [], time.perf_counter() + seconds
    while len(times) < LEAST or (time.perf_counter() < end and len(times) < MOST):
        times.append(timed(call))
    return statistics.median(times)
