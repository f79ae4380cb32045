// SPDX-License-Identifier: Apache-2.0
// The operator in ten lines: causal self-attention of two packed sentences, forward and backward.
#include "fovea/attention/attention.h"

#include <cstdio>
#include <vector>

int main() {
  using namespace fovea;
  const index T = 7, H = 2, D = 4;  // five tokens of the first sentence, two of the second
  std::vector<float> x(T * H * D), o(x.size()), d_o(x.size(), 1.0f), dx(x.size()), lse(H * T);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i % 11 + 1);
  const std::int32_t offsets[] = {0, 5, 7};

  const auto tensor = [&](auto& values) {
    return View<float>::contiguous(values.data(), 1, T, H, D);
  };
  const auto qkv = tensor(x), out = tensor(o);
  const auto rows = RowView<float>::contiguous(lse.data(), 1, H, T);
  const Attention<float> attention{.mask = mask::Causal(), .packed = {{offsets, 3}, {offsets, 3}}};
  attention_forward<float>(Context(), attention, {qkv, qkv, qkv}, {.o = out, .lse = rows});
  attention_backward<float>(Context(), attention, {qkv, qkv, qkv}, {out, rows, tensor(d_o)},
                            {.dv = tensor(dx)});

  std::printf("the first token of each sentence sees itself alone: %g = %g, %g = %g\n", o[0], x[0],
              o[5 * H * D], x[5 * H * D]);
  return o[0] == x[0] && o[5 * H * D] == x[5 * H * D] ? 0 : 1;
}
