#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes golden.h: losses and gradients of small language models by PyTorch, in float64.

Written from the papers and from docs/formulas.md, without fovea. Needs torch; run it again only if
the definition of the model changes:

    python3 tests/model/make_golden.py | clang-format --style=file --assume-filename=golden.h \\
        > tests/model/golden.h
"""

import math

import torch
import torch.nn.functional as F

VOCABULARY, BLOCK, LAYERS = 11, 8, 2
LENGTHS = [3, 0, 5, 8]
SAMPLES = [5, 6, (1 << 40) + 5, 9]
SEED, SCALE = 11, 0.125

DEFAULTS = dict(heads=2, kv_heads=0, head_dim=0, width=8, ff=0, dropout=0.0, position="learned",
                embedding_scale=0, norm="layer", norm_position="pre", ln_variant="standard", bias=False,
                activation="gelu", tie=True)

# Every choice of a configuration appears in at least two of these, beside different others.
FORMS = {
    "Default": dict(),
    "RmsSharedKeys": dict(position="sinusoidal", norm="rms", activation="silu", kv_heads=1, tie=False),
    "PostUnbiasedAlibi": dict(position="alibi", norm_position="post", ln_variant="unbiased", bias=True,
                              activation="gelu-tanh", heads=3, head_dim=3),
    "NoPositionsRelu": dict(position="none", bias=True, tie=False, activation="relu", ff=5),
    "Source": dict(norm_position="post", ln_variant="unbiased", bias=True, activation="relu", tie=False),
    "GroupedAlibi": dict(position="alibi", norm="rms", heads=4, kv_heads=2, bias=True, ff=12),
    "PreUnbiased": dict(ln_variant="unbiased", position="sinusoidal", embedding_scale=1.5, activation="gelu-tanh",
                        heads=4, kv_heads=2),
    "PostRmsFewHeads": dict(norm="rms", embedding_scale=0.75, norm_position="post", position="none", activation="silu",
                            heads=1, head_dim=5),
    "Dropout": dict(dropout=0.25),
    "DropoutNextUpdate": dict(dropout=0.25, step=1),
    "PostDropoutAlibi": dict(dropout=0.5, norm_position="post", position="alibi", bias=True, tie=False,
                             heads=4, kv_heads=2, step=(1 << 32) + 3),
}


def values(number, count):
    """Numbers in [-.5, .5) that every float type holds exactly."""
    return [((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5 for i in range(count)]


def philox(counter, key):
    """Philox4x32-10: Salmon, Moraes, Dror, Shaw 2011."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def halves(x):
    return [x & 0xFFFFFFFF, x >> 32]


def names():
    """(sequence, position) of every row."""
    return [(s, t) for s, length in enumerate(LENGTHS) for t in range(length)]


class Model:
    def __init__(self, form, dtype):
        self.c = {**DEFAULTS, "step": 0, **form}
        self.dtype = dtype
        c = self.c
        c["kv_heads"] = c["kv_heads"] or c["heads"]
        c["head_dim"] = c["head_dim"] or c["width"] // c["heads"]
        c["ff"] = c["ff"] or 4 * c["width"]
        self.parameters = {}
        self.make()

    def add(self, name, shape):
        x = torch.tensor(values(len(self.parameters), math.prod(shape)), dtype=torch.float64)
        x = 1 + x / 2 if name.endswith("norm.weight") else x
        self.parameters[name] = x.reshape(shape).to(self.dtype).requires_grad_()

    def add_linear(self, name, outputs, inputs):
        self.add(name + ".weight", (outputs, inputs))
        if self.c["bias"]:
            self.add(name + ".bias", (outputs,))

    def add_norm(self, name):
        self.add(name + ".weight", (self.c["width"],))
        if self.c["bias"] and self.c["norm"] == "layer":
            self.add(name + ".bias", (self.c["width"],))

    def make(self):
        c = self.c
        C, D = c["width"], c["head_dim"]
        self.add("embedding.tokens", (VOCABULARY, C))
        if c["position"] == "learned":
            self.add("embedding.positions", (BLOCK, C))
        for layer in range(LAYERS):
            at = f"blocks.{layer}."
            self.add_linear(at + "attention.qkv", (c["heads"] + 2 * c["kv_heads"]) * D, C)
            self.add_linear(at + "attention.out", C, c["heads"] * D)
            self.add_norm(at + "attention_norm")
            self.add_linear(at + "feed_forward.in", c["ff"], C)
            self.add_linear(at + "feed_forward.out", C, c["ff"])
            self.add_norm(at + "feed_forward_norm")
        if c["norm_position"] == "pre":
            self.add_norm("norm")
        if not c["tie"]:
            self.add_linear("output", VOCABULARY, C)

    def linear(self, name, x):
        return F.linear(x, self.parameters[name + ".weight"], self.parameters.get(name + ".bias"))

    def norm(self, name, x):
        gain, bias = self.parameters[name + ".weight"], self.parameters.get(name + ".bias")
        if self.c["norm"] == "rms":
            return gain * x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)
        if self.c["ln_variant"] == "standard":
            return F.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)
        y = gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
        return y if bias is None else y + bias

    def key(self, layer):
        return philox([*halves(self.c["step"]), layer, 1], halves(SEED))

    def dropout(self, x, layer):
        """Of rows; the width is below 16, so that column c is counter c."""
        p, key = self.c["dropout"], self.key(layer)[:2]
        if p == 0:
            return x
        kept = [[philox([c, t, *halves(SAMPLES[s])], key)[0] >= p * 2**32 for c in range(x.shape[1])]
                for s, t in names()]
        return x * torch.tensor(kept) / (1 - p)

    def drop_weights(self, weights, layer, sample):
        """Of one sequence: [H, T, T]."""
        p, step = self.c["dropout"], self.key(layer)
        if p == 0:
            return weights
        kept = torch.empty(weights.shape, dtype=torch.bool)
        for h, i, j in torch.cartesian_prod(*(torch.arange(n) for n in weights.shape)).tolist():
            stream = philox([*halves(sample), h, step[2]], step[:2])
            word = philox([i, j // 8, stream[2], stream[3]], stream[:2])[j % 8 // 2]
            kept[h, i, j] = (word >> (16 * (j % 2))) & 0xFFFF >= p * 2**16
        return weights * kept / (1 - p)

    def slopes(self):
        """As the code of Press, Smith, Lewis 2022 has them."""
        def of_power(n):
            return [2 ** (-8 * (h + 1) / n) for h in range(n)]
        H = self.c["heads"]
        power = 2 ** math.floor(math.log2(H))
        return torch.tensor(of_power(power) + of_power(2 * power)[::2][:H - power], dtype=self.dtype)

    def attend(self, q, k, v, layer, sample):
        """One sequence: q [T, H, D], k and v [T, G, D]."""
        T, H, D = q.shape
        k, v = (x.repeat_interleave(H // x.shape[1], 1) for x in (k, v))
        scores = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(D)
        i, j = torch.arange(T)[:, None], torch.arange(T)
        if self.c["position"] == "alibi":
            scores = scores - self.slopes()[:, None, None] * (i - j).abs()
        weights = scores.masked_fill(j > i, -math.inf).softmax(-1)
        weights = self.drop_weights(weights, layer, sample)
        return torch.einsum("hij,jhd->ihd", weights, v).reshape(T, H * D)

    def attention(self, name, x, layer):
        H, G, D = self.c["heads"], self.c["kv_heads"], self.c["head_dim"]
        q, k, v = self.linear(name + ".qkv", x).split([H * D, G * D, G * D], -1)
        parts, first = [], 0
        for sample, length in zip(SAMPLES, LENGTHS):
            rows = slice(first, first + length)
            first += length
            if length:
                parts.append(self.attend(q[rows].reshape(-1, H, D), k[rows].reshape(-1, G, D),
                                         v[rows].reshape(-1, G, D), layer, sample))
        return self.linear(name + ".out", torch.cat(parts))

    def feed_forward(self, name, x):
        f = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu,
             "gelu-tanh": lambda y: F.gelu(y, approximate="tanh")}[self.c["activation"]]
        return self.linear(name + ".out", f(self.linear(name + ".in", x)))

    def residual(self, x, norm, layer, f):
        if self.c["norm_position"] == "pre":
            return x + self.dropout(f(self.norm(norm, x)), layer)
        return self.norm(norm, x + self.dropout(f(x), layer))

    def embed(self, ids):
        scale = self.c["embedding_scale"] or (math.sqrt(self.c["width"]) if self.c["position"] == "sinusoidal" else 1)
        x = scale * self.parameters["embedding.tokens"][ids]
        places = torch.tensor([t for _, t in names()])
        if self.c["position"] == "learned":
            x = x + self.parameters["embedding.positions"][places]
        if self.c["position"] == "sinusoidal":
            C = self.c["width"]
            angles = places[:, None] / 10000 ** (torch.arange(0, C, 2, dtype=torch.float64) / C)
            x = x + torch.stack([angles.sin(), angles.cos()], -1).reshape(-1, C).to(self.dtype)
        return self.dropout(x, 0)

    def loss(self):
        N = sum(LENGTHS)
        x = self.embed(torch.tensor([(n * n * 5 + 3 * n + 1) % VOCABULARY for n in range(N)]))
        for l in range(LAYERS):
            at = f"blocks.{l}."
            x = self.residual(x, at + "attention_norm", 4 * l + 2,
                              lambda y: self.attention(at + "attention", y, 4 * l + 1))
            x = self.residual(x, at + "feed_forward_norm", 4 * l + 3,
                              lambda y: self.feed_forward(at + "feed_forward", y))
        if self.c["norm_position"] == "pre":
            x = self.norm("norm", x)
        logits = F.linear(x, self.parameters["embedding.tokens"]) if self.c["tie"] else self.linear("output", x)
        targets = torch.tensor([-1 if n % 5 == 4 else (n * 7 + 3) % VOCABULARY for n in range(N)])
        return SCALE * F.cross_entropy(logits, targets, ignore_index=-1, reduction="sum")


def run(form, dtype):
    """The loss, and the gradients by name."""
    model = Model(form, dtype)
    loss = model.loss()
    loss.backward()
    return loss.item(), {name: p.grad.double().flatten() for name, p in model.parameters.items()}


def plain_errors(form, loss, gradients):
    """Of PyTorch in float32: the largest relative error of the loss and of any element, against the
    largest of its gradient; and the norm of all errors together, against that of all gradients."""
    float_loss, float_gradients = run(form, torch.float32)
    differences = {name: float_gradients[name] - g for name, g in gradients.items()}
    largest = [abs(float_loss - loss) / abs(loss)]
    largest += [(differences[name].abs().max() / g.abs().max()).item() for name, g in gradients.items()]
    whole = torch.cat(list(differences.values())).norm() / torch.cat(list(gradients.values())).norm()
    return max(largest), whole.item()


def spelled(form):
    """A form as a C++ expression; words as the library writes its enumerators."""
    kinds = dict(norm="NormKind", norm_position="NormPosition", ln_variant="LayerNormVariant",
                 activation="Activation")
    given = {"heads": DEFAULTS["heads"], **form}
    fields = []
    for name in ["heads", "kv_heads", "head_dim", "ff", "dropout", "position", "embedding_scale", "norm",
                 "norm_position", "ln_variant", "bias", "activation", "tie"]:
        if name not in given:
            continue
        value = given[name]
        if name == "position":
            value = f'enum_from_name<PositionKind>("{value}")'
        elif name in kinds:
            value = f"{kinds[name]}::k" + "".join(word.capitalize() for word in value.split("-"))
        fields.append(f"c.{name} = {str(value).lower() if isinstance(value, bool) else value};")
    return "form([](LanguageModelConfig& c) { " + " ".join(fields) + " })"


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Losses and gradients of small language models: made by make_golden.py, with PyTorch in float64.
#pragma once

#include "tests/model/golden_form.h"

namespace fovea::golden {

"""


def main():
    torch.set_num_threads(1)
    print(HEAD)
    print("inline const std::vector<Form> kForms = {")
    for title, form in FORMS.items():
        loss, gradients = run(form, torch.float64)
        largest, norm = plain_errors(form, loss, gradients)
        step = form.get("step", 0)
        print(f'{{"{title}", {spelled(form)}, {step}u, {loss!r}, {largest:.2e}, {norm:.2e}, {{')
        for number, (name, g) in enumerate(gradients.items()):
            weights = torch.tensor(values(100 + number, g.numel()), dtype=torch.float64)
            print(f'{{"{name}", {g.norm().item()!r}, {(g @ weights).item()!r}, {g.abs().max().item():.3g}}},')
        print("}},")
    print("};\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()
