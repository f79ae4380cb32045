#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes recurrent_golden.h: results and gradients of torch.nn's RNN, GRU and LSTM in float64, two layers of two
directions over packed sequences.

Needs torch; run it again only if the definition of a layer changes:

    python3 tests/nn/make_recurrent_golden.py | clang-format --style=file \\
        --assume-filename=recurrent_golden.h > tests/nn/recurrent_golden.h
"""

import torch

IN, HIDDEN, LAYERS = 5, 6, 2
LENGTHS = [3, 0, 1, 6]  # PyTorch refuses a sequence without rows, which has none to compare


def values(number, count):
    """Numbers in [-.5, .5) that every float type holds exactly."""
    return torch.tensor([((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5 for i in range(count)],
                        dtype=torch.float64)


def parameters_of(layer, kind):
    """Our parameters in order: name -> (size, what writes them into PyTorch's, what reads their gradient)."""
    found = {}
    for k in range(LAYERS):
        for suffix in (f"_l{k}", f"_l{k}_reverse"):
            ih, hh, b, second = (getattr(layer, name + suffix)
                                 for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            torch.nn.init.zeros_(second)
            found["weight_ih" + suffix] = ih
            found["weight_hh" + suffix] = hh
            found["bias" + suffix] = b
            if kind == "GRU":
                found["bias_hn" + suffix] = second
    return found


def run(kind):
    layer = getattr(torch.nn, kind)(IN, HIDDEN, LAYERS, bidirectional=True).double()
    parameters = parameters_of(layer, kind)
    own = {name: (slice(2 * HIDDEN, None) if name.startswith("bias_hn") else slice(None)) for name in parameters}
    with torch.no_grad():
        for number, (name, p) in enumerate(parameters.items()):
            part = p[own[name]]
            part.copy_(values(number, part.numel()).reshape(part.shape))
    x = values(50, sum(LENGTHS) * IN).reshape(-1, IN).requires_grad_()
    packed = torch.nn.utils.rnn.pack_sequence([s for s in x.split(LENGTHS) if len(s)], enforce_sorted=False)
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
    y = torch.cat([s[:n] for s, n in zip(padded, lengths)])
    loss = (y.flatten() * values(60, y.numel())).sum()
    loss.backward()
    gradients = {"x": x.grad} | {name: p.grad[own[name]] for name, p in parameters.items()}
    return y.detach(), gradients


def row(name, tensor, number):
    flat = tensor.flatten()
    projection = (flat @ values(100 + number, flat.numel())).item()
    return f'{{"{name}", {flat.norm().item()!r}, {projection!r}, {flat.abs().max().item():.3g}}},'


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Results and gradients of recurrent layers: made by make_recurrent_golden.py, with PyTorch in
// float64.
#pragma once

#include <vector>

#include "fovea/kernel/recurrent.h"

namespace fovea::golden {

/// A matrix: its norm, its product with golden_value(100 + its place in the list), its largest
/// element.
struct Summary {
  const char* name;
  double norm, projection, largest;
};

/// y, the gradient of x, those of the parameters in their order.
struct RecurrentForm {
  const char* name;
  RecurrentKind kind;
  std::vector<Summary> summaries;
};

inline const std::vector<RecurrentForm> kRecurrentForms = {"""


def main():
    print(HEAD)
    for kind in ("RNN", "GRU", "LSTM"):
        y, gradients = run(kind)
        print(f'{{"{kind.capitalize()}", RecurrentKind::k{kind.capitalize()}, {{')
        for number, (name, tensor) in enumerate(({"y": y} | gradients).items()):
            print(row(name, tensor, number))
        print("}},")
    print("};\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()
