#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes convolution_golden.h: outputs and gradients of convolutions by PyTorch's Conv1d, in float64.

Written without fovea. Needs torch; run it again only if the definition of the layers changes:

    python3 tests/nn/make_convolution_golden.py | clang-format --style=file \\
        --assume-filename=convolution_golden.h > tests/nn/convolution_golden.h
"""

import math

import torch
import torch.nn.functional as F

LENGTHS = [3, 0, 1, 7, 2]

# in, out, width, dilation, causal, gated
FORMS = {
    "Same": (4, 3, 3, 1, False, False),
    "SameEven": (3, 5, 4, 1, False, False),
    "SameDilated": (5, 2, 4, 3, False, False),
    "Causal": (4, 3, 3, 1, True, False),
    "CausalDilated": (3, 4, 3, 2, True, False),
    "Point": (4, 6, 1, 1, False, False),
    "GatedSame": (4, 3, 5, 1, False, True),
    "GatedCausal": (3, 4, 2, 1, True, True),
}
TEXT_CNN = (4, 3, [1, 2, 5])  # in, out, widths


def values(number, shape):
    """Numbers in [-.5, .5) that every float type holds exactly."""
    count = math.prod(shape)
    numbers = [((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5 for i in range(count)]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape)


def convolve(x, weight, bias, dilation, causal, whole=False):
    """Of one sequence x [T, in]; weight [out, width, in], which Conv1d wants as [out, in, width]."""
    width = weight.shape[1]
    kernel = weight.transpose(1, 2)
    columns = x.T[None]
    if causal:
        columns = F.pad(columns, ((width - 1) * dilation, 0))
    y = F.conv1d(columns, kernel, bias, padding=0 if causal or whole else "same", dilation=dilation)
    return y[0].T


def sequences(x):
    first = 0
    for length in LENGTHS:
        yield x[first:first + length]
        first += length


def layer(form, x, weight, bias):
    _, _, _, dilation, causal, gated = form
    parts = []
    for part in sequences(x):
        if len(part):
            y = convolve(part, weight, bias, dilation, causal)
            parts.append(F.glu(y, -1) if gated else y)
    return torch.cat(parts)


def text_cnn(whole, x, *parameters):
    rows = []
    for part in sequences(x):
        if not len(part):
            rows.append(torch.zeros(TEXT_CNN[1] * len(TEXT_CNN[2]), dtype=x.dtype))
            continue
        pairs = zip(parameters[::2], parameters[1::2])
        windows = [convolve(part, w, b, 1, False, whole and len(part) >= w.shape[1]) for w, b in pairs]
        rows.append(torch.cat([F.relu(y).max(0).values for y in windows]))
    return torch.stack(rows)


def run(f, tensors, dtype):
    """The output, and the gradients of sum(output * values): of the input and of each parameter."""
    leaves = [t.detach().clone().to(dtype).requires_grad_() for t in tensors]
    y = f(*leaves)
    (y * values(50, y.shape).to(dtype)).sum().backward()
    return [y.detach().double(), *(leaf.grad.double() for leaf in leaves)]


def spelled(title, call, f, shapes):
    tensors = [values(number, shape) for number, shape in enumerate(shapes)]
    exact, plain = run(f, tensors, torch.float64), run(f, tensors, torch.float32)
    error = max(((p - e).abs().max() / e.abs().max()).item() for p, e in zip(plain, exact))
    numbers = ",".join(f"{{{t.norm().item()!r}, {(t * values(100 + i, t.shape)).sum().item()!r},"
                       f" {t.abs().max().item():.3g}}}" for i, t in enumerate(exact))
    return f'{{"{title}", {call}, {error:.2e}, {{{numbers}}}}},'


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Outputs and gradients of convolutions: made by make_convolution_golden.py, with PyTorch's Conv1d
// in float64.
#pragma once

#include <vector>

#include "fovea/nn/convolution.h"

namespace fovea::golden {

/// Of one result: its norm, its product with golden_values(100 + its number), its largest element.
struct Numbers {
  double norm, projection, largest;
};

template <class Options>
struct Form {
  const char* name;
  Options options;
  double plain_largest;  ///< of PyTorch in float32: the largest relative error of any result
  std::vector<Numbers> results;  ///< the output, and gradients: of x, then of each parameter
};
"""


def main():
    torch.set_num_threads(1)
    N = sum(LENGTHS)
    print(HEAD)
    print("inline const std::vector<Form<ConvolutionLayerOptions>> kConvolutions = {")
    for title, form in FORMS.items():
        inputs, outputs, width, dilation, causal, gated = form
        rows = 2 * outputs if gated else outputs
        call = (f"{{.in = {inputs}, .out = {outputs}, .width = {width},"
                f" .padding = Padding::{'kCausal' if causal else 'kSame'}, .dilation = {dilation},"
                f" .gated = {str(gated).lower()}}}")
        print(spelled(title, call, lambda *t, form=form: layer(form, *t),
                      [(N, inputs), (rows, width, inputs), (rows,)]))
    print("};\n")
    inputs, outputs, widths = TEXT_CNN
    shapes = [(N, inputs)]
    for width in widths:
        shapes += [(outputs, width, inputs), (outputs,)]
    print("inline const std::vector<Form<TextCnnOptions>> kTextCnns = {")
    for title, whole in (("WholeWindows", True), ("PaddedWindows", False)):
        call = (f"{{.in = {inputs}, .out = {outputs}, .widths = {{{', '.join(map(str, widths))}}},"
                f" .whole = {str(whole).lower()}}}")
        print(spelled(title, call, lambda *t, whole=whole: text_cnn(whole, *t), shapes))
    print("};\n}  // namespace fovea::golden")


if __name__ == "__main__":
    main()
