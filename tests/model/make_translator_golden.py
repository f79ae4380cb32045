#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes translator_golden.h: losses and gradients of small translators by PyTorch, in float64.

Written from Vaswani et al. 2017 and docs/formulas.md, without fovea. Needs torch; run it again only if
the definition of the model changes:

    python3 tests/model/make_translator_golden.py | clang-format --style=file \\
        --assume-filename=translator_golden.h > tests/model/translator_golden.h
"""

import math

import torch
import torch.nn.functional as F

from make_golden import values

WIDTH, HEADS, FF, ENCODER, DECODER, BLOCK = 8, 2, 12, 2, 2, 8
SOURCE, TARGET = 11, 9
SOURCE_LENGTHS, TARGET_LENGTHS = [3, 1, 5], [4, 2, 3]
SCALE = 0.125

FORMS = {
    "Pre": dict(norm_position="pre", position="sinusoidal", tie=True, share=False, smoothing=0.1),
    "Post": dict(norm_position="post", position="learned", tie=False, share=False, smoothing=0),
    "OneTable": dict(norm_position="post", position="none", tie=True, share=True, smoothing=0.2),
}


def sequences(lengths):
    first = 0
    for length in lengths:
        yield slice(first, first + length)
        first += length


class Model:
    def __init__(self, form, dtype):
        self.form, self.dtype, self.parameters = form, dtype, {}
        self.target = SOURCE if form["share"] else TARGET
        self.tables("encoder", SOURCE, True)
        for n in range(ENCODER):
            self.block(f"encoder.blocks.{n}.", False)
        self.last_norm("encoder")
        self.tables("decoder", self.target, not form["share"])
        for n in range(DECODER):
            self.block(f"decoder.blocks.{n}.", True)
        self.last_norm("decoder")
        if not form["tie"]:
            self.add_linear("output", self.target, WIDTH)

    def add(self, name, *shape):
        x = torch.tensor(values(len(self.parameters), math.prod(shape)), dtype=torch.float64)
        x = 1 + x / 2 if name.endswith("norm.weight") else x
        self.parameters[name] = x.reshape(shape).to(self.dtype).requires_grad_()

    def add_linear(self, name, outputs, inputs):
        self.add(name + ".weight", outputs, inputs)
        self.add(name + ".bias", outputs)

    def add_norm(self, name):
        self.add(name + ".weight", WIDTH)
        self.add(name + ".bias", WIDTH)

    def tables(self, side, vocabulary, own):
        if own:
            self.add(side + ".embedding.tokens", vocabulary, WIDTH)
        if self.form["position"] == "learned":
            self.add(side + ".embedding.positions", BLOCK, WIDTH)

    def block(self, at, decodes):
        self.add_linear(at + "attention.qkv", 3 * WIDTH, WIDTH)
        self.add_linear(at + "attention.out", WIDTH, WIDTH)
        self.add_norm(at + "attention_norm")
        if decodes:
            self.add_linear(at + "cross.q", WIDTH, WIDTH)
            self.add_linear(at + "cross.kv", 2 * WIDTH, WIDTH)
            self.add_linear(at + "cross.out", WIDTH, WIDTH)
            self.add_norm(at + "cross_norm")
        self.add_linear(at + "feed_forward.in", FF, WIDTH)
        self.add_linear(at + "feed_forward.out", WIDTH, FF)
        self.add_norm(at + "feed_forward_norm")

    def last_norm(self, side):
        if self.form["norm_position"] == "pre":
            self.add_norm(side + ".norm")

    def linear(self, name, x):
        return F.linear(x, self.parameters[name + ".weight"], self.parameters[name + ".bias"])

    def norm(self, name, x):
        return F.layer_norm(x, (WIDTH,), self.parameters[name + ".weight"], self.parameters[name + ".bias"], 1e-5)

    def residual(self, x, norm, f):
        if self.form["norm_position"] == "pre":
            return x + f(self.norm(norm, x))
        return self.norm(norm, x + f(x))

    def attend(self, q, k, v, causal):
        """q [T, C], k and v [S, C] of one sentence."""
        q, k, v = (x.reshape(len(x), HEADS, WIDTH // HEADS).transpose(0, 1) for x in (q, k, v))
        scores = q @ k.transpose(1, 2) / math.sqrt(WIDTH // HEADS)
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1).bool(), -math.inf)
        return (scores.softmax(-1) @ v).transpose(0, 1).reshape(-1, WIDTH)

    def attention(self, name, x, causal):
        lengths = TARGET_LENGTHS if causal else SOURCE_LENGTHS
        q, k, v = self.linear(name + ".qkv", x).chunk(3, -1)
        parts = [self.attend(q[s], k[s], v[s], causal) for s in sequences(lengths)]
        return self.linear(name + ".out", torch.cat(parts))

    def cross(self, name, x, source):
        q, (k, v) = self.linear(name + ".q", x), self.linear(name + ".kv", source).chunk(2, -1)
        both = zip(sequences(TARGET_LENGTHS), sequences(SOURCE_LENGTHS))
        return self.linear(name + ".out", torch.cat([self.attend(q[t], k[s], v[s], False) for t, s in both]))

    def feed_forward(self, name, x):
        return self.linear(name + ".out", F.relu(self.linear(name + ".in", x)))

    def table(self, side):
        return self.parameters[("encoder" if self.form["share"] else side) + ".embedding.tokens"]

    def embed(self, side, ids, lengths):
        sinusoidal = self.form["position"] == "sinusoidal"
        x = self.table(side)[ids] * (math.sqrt(WIDTH) if sinusoidal else 1)
        places = torch.cat([torch.arange(n) for n in lengths])
        if self.form["position"] == "learned":
            x = x + self.parameters[side + ".embedding.positions"][places]
        if sinusoidal:
            angles = places[:, None] / 10000 ** (torch.arange(0, WIDTH, 2, dtype=torch.float64) / WIDTH)
            x = x + torch.stack([angles.sin(), angles.cos()], -1).reshape(-1, WIDTH).to(self.dtype)
        return x

    def run(self, side, x, source):
        for n in range(ENCODER if source is None else DECODER):
            at = f"{side}.blocks.{n}."
            x = self.residual(x, at + "attention_norm",
                              lambda y: self.attention(at + "attention", y, source is not None))
            if source is not None:
                x = self.residual(x, at + "cross_norm", lambda y: self.cross(at + "cross", y, source))
            x = self.residual(x, at + "feed_forward_norm", lambda y: self.feed_forward(at + "feed_forward", y))
        return self.norm(side + ".norm", x) if self.form["norm_position"] == "pre" else x

    def loss(self):
        N = sum(TARGET_LENGTHS)
        read = torch.tensor([(n * n * 5 + 3 * n + 1) % SOURCE for n in range(sum(SOURCE_LENGTHS))])
        written = torch.tensor([(n * n * 3 + n + 2) % self.target for n in range(N)])
        targets = torch.tensor([-1 if n % 5 == 4 else (n * 7 + 3) % self.target for n in range(N)])
        source = self.run("encoder", self.embed("encoder", read, SOURCE_LENGTHS), None)
        x = self.run("decoder", self.embed("decoder", written, TARGET_LENGTHS), source)
        logits = F.linear(x, self.table("decoder")) if self.form["tie"] else self.linear("output", x)
        return SCALE * F.cross_entropy(logits, targets, ignore_index=-1, reduction="sum",
                                       label_smoothing=self.form["smoothing"])


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Losses and gradients of small translators: made by make_translator_golden.py, with PyTorch in
// float64.
#pragma once

#include <vector>

#include "fovea/model/translator.h"

namespace fovea::golden {

/// The gradient of one parameter: its norm, and its product with golden values.
struct TranslatorGradient {
  const char* name;
  double norm, projection;
};

struct TranslatorForm {
  const char* name;
  NormPosition norm_position;
  PositionKind position;
  bool tie, share;
  double smoothing;
  double loss;
  std::vector<TranslatorGradient> gradients;
};
"""


def main():
    torch.set_num_threads(1)
    print(HEAD)
    print("inline const std::vector<TranslatorForm> kTranslatorForms = {")
    for title, form in FORMS.items():
        model = Model(form, torch.float64)
        loss = model.loss()
        loss.backward()
        print(f'{{"{title}", NormPosition::k{form["norm_position"].capitalize()}, '
              f'PositionKind::k{form["position"].capitalize()}, {str(form["tie"]).lower()}, '
              f'{str(form["share"]).lower()}, {form["smoothing"]}, {loss.item()!r}, {{')
        for number, (name, p) in enumerate(model.parameters.items()):
            g = p.grad.flatten()
            weights = torch.tensor(values(100 + number, g.numel()), dtype=torch.float64)
            print(f'{{"{name}", {g.norm().item()!r}, {(g @ weights).item()!r}}},')
        print("}},")
    print("};\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()
