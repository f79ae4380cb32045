# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ways to each part of attention, float32: the worker of attention_table.py.

A way is a function of (q, k, v, parameters) that gives o. Every way that a case has is timed, as it
is and (where asked) compiled; the fastest counts.
"""
import os
import statistics
import time

import common

SECONDS = 0.5  # to spend on each direction, at least three runs


def median_time(call):
    call()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Ways:
    """The functions of all cases."""

    def __init__(self, torch):
        self.torch, self.F = torch, torch.nn.functional
        self.masks = {}  # made once, as a program would

    def distances(self, q, k):
        T, S = q.shape[2], k.shape[2]
        return self.torch.arange(S)[None, :] - (self.torch.arange(T)[:, None] + S - T)

    def masked(self, q, k, s):
        return s.masked_fill(self.distances(q, k) > 0, float("-inf"))

    def weights(self, q, k, bias=0.0, cap=None):
        s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias
        if cap is not None:
            s = cap * self.torch.tanh(s / cap)
        return self.masked(q, k, s)

    def eager(self, bias_of=None):
        bias = bias_of or (lambda q, k, a: a)
        return lambda q, k, v, a: self.torch.softmax(self.weights(q, k, bias(q, k, a)), -1) @ v

    def capped(self, q, k, v, cap=30.0):
        return self.torch.softmax(self.weights(q, k, cap=cap), -1) @ v

    def sdpa(self, bias_of=None):
        bias = bias_of or (lambda q, k, a: a)
        return lambda q, k, v, a: self.F.scaled_dot_product_attention(q, k, v, attn_mask=self.masked(q, k, bias(q, k, a)))

    def plain(self, **options):
        return lambda q, k, v: self.F.scaled_dot_product_attention(q, k, v, **options)

    def alibi(self, q, k, slopes):
        return -slopes[:, None, None] * self.distances(q, k).abs()

    def t5(self, q, k, table):
        d, exact, far = -self.distances(q, k), 16, 128
        scale = 16 / self.torch.log(self.torch.tensor(far / exact))
        logs = exact + (self.torch.log(d.clamp(min=1) / exact) * scale).long()
        bucket = self.torch.where(d < exact, d.clamp(min=0), logs.clamp(max=31))
        return table[bucket].permute(2, 0, 1)

    def shaw(self, q, k, v, keys, values):
        s = (keys.shape[0] - 1) // 2
        there = ((-self.distances(q, k)).clamp(-s, s) + s).expand(q.shape[0], q.shape[1], -1, -1)
        by_place = (q @ keys.t() / q.shape[-1] ** 0.5).gather(-1, there)
        p = self.torch.softmax(self.weights(q, k, by_place), -1)
        sums = self.torch.zeros(*p.shape[:3], 2 * s + 1).scatter_add(-1, there, p)
        return p @ v + sums @ values

    def sink(self, q, k, v, logits):
        column = logits[None, :, None, None].expand(q.shape[0], -1, q.shape[2], 1)
        return self.torch.softmax(self.torch.cat([self.weights(q, k), column], -1), -1)[..., :-1] @ v

    def dropped(self, q, k, v):
        return self.F.dropout(self.torch.softmax(self.weights(q, k), -1), 0.1) @ v

    def padded(self, q, k, v):
        B, T = q.shape[0], q.shape[2]
        if (B, T) not in self.masks:
            lengths = self.torch.tensor([T * (b + 1) // B for b in range(B)])
            self.masks[B, T] = (self.torch.arange(T) < lengths[:, None])[:, None, None, :]
        return self.F.scaled_dot_product_attention(q, k, v, attn_mask=self.masks[B, T])

    def band(self, q, k, v):
        T = q.shape[2]
        if T not in self.masks:
            self.masks[T] = self.distances(q, k).abs() <= 64
        return self.F.scaled_dot_product_attention(q, k, v, attn_mask=self.masks[T])

    def cases(self):
        """name of a case -> (parameters that are learned, {name of a way: function})."""
        return {
            "dot": ((), {"sdpa": self.plain(is_causal=True)}),
            "alibi": (("H",), {"sdpa": self.sdpa(self.alibi), "eager": self.eager(self.alibi)}),
            "t5": (("32 H",), {"sdpa": self.sdpa(self.t5), "eager": self.eager(self.t5)}),
            "shaw": (("33 D", "33 D"), {"eager": self.shaw}),
            "softcap": ((), {"eager": self.capped}),
            "sink": (("H",), {"eager": self.sink}),
            "dense": (("1 H T S",), {"sdpa": self.sdpa(), "eager": self.eager()}),
            "lambda": (("1",), {"eager": self.capped}),
            "dropout": ((), {"sdpa": self.plain(is_causal=True, dropout_p=0.1), "eager": self.dropped}),
            "ragged": ((), {"sdpa": self.padded}),
            "window": ((), {"sdpa": self.band}),
        }


def flex(torch):
    """FlexAttention's own examples: (score_mod, mask_mod)."""
    return {
        "noop": (None, None),
        "causal": (None, lambda b, h, i, j: i >= j),
        "alibi": (lambda s, b, h, i, j: s - 0.5 ** (h + 1) * (i - j).abs(), lambda b, h, i, j: i >= j),
        "softcap": (lambda s, b, h, i, j: 30 * torch.tanh(s / 30), lambda b, h, i, j: i >= j),
        "window": (None, lambda b, h, i, j: (i >= j) & (i - j <= 256)),
    }


def main():
    try:
        import torch
    except ImportError as error:
        return common.serve({"absent": str(error)}, None)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    cases, compiled = Ways(torch).cases(), {}

    def of_case(case, sizes, compile_too, with_backward):
        B, T, S, H, G, D, Dv = sizes
        named = dict(B=B, T=T, S=S, H=H, D=D)
        torch.manual_seed(1)
        q, g = torch.randn(B, H, T, D), torch.randn(B, H, T, Dv)
        k, v = torch.randn(B, H, S, D), torch.randn(B, H, S, Dv)
        shapes, functions = cases[case]
        learned = [torch.randn([named.get(w) or int(w) for w in shape.split()]).abs() + 0.5 for shape in shapes]
        inputs = [t.requires_grad_(with_backward) for t in (q, k, v, *learned)]
        functions = dict(functions)
        if compile_too:
            for name, way in cases[case][1].items():
                key = (case, name, tuple(sizes))
                compiled.setdefault(key, torch.compile(way, dynamic=False))
                functions[name + ", compiled"] = compiled[key]
        times = {}
        for name, way in functions.items():
            def both(way=way):
                out = way(*inputs)
                if with_backward:
                    torch.autograd.grad(out, inputs, g)
            times[name] = median_time(both)
        return {"seconds": min(times.values()), "way": min(times, key=times.get), "ways": times}

    def of_flex(example, sizes):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        B, T, S, H, G, D, Dv = sizes
        torch.manual_seed(1)
        q, k, v = torch.randn(B, H, T, D), torch.randn(B, H, S, D), torch.randn(B, H, S, Dv)
        mod, mask = flex(torch)[example]
        block = create_block_mask(mask, None, None, T, S, device="cpu") if mask else None
        key = ("flex", example, tuple(sizes))
        compiled.setdefault(key, torch.compile(flex_attention, dynamic=False))
        with torch.no_grad():
            seconds = median_time(lambda: compiled[key](q, k, v, score_mod=mod, block_mask=block))
        return {"seconds": seconds, "way": "flex_attention, compiled"}

    def answer(case, sizes, compile_too=False, with_backward=True):
        if case.startswith("flex "):
            return of_flex(case.removeprefix("flex "), sizes)
        return of_case(case, sizes, compile_too, with_backward)

    common.serve({"ready": f"PyTorch {torch.__version__}"}, answer)


if __name__ == "__main__":
    main()
