// SPDX-License-Identifier: Apache-2.0
// Causal attention over two tokens of two numbers, and over two packed sequences of one token each
// with ALiBi, in a program that is not ours.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "fovea/attention/attention.h"

int main() {
  const float q[] = {1, 0, 1, 1};
  const float v[] = {1, 2, 3, 4};
  float o[4] = {};
  const auto qk = fovea::View<const float>::contiguous(q, 1, 2, 1, 2);
  const auto values = fovea::View<const float>::contiguous(v, 1, 2, 1, 2);
  const fovea::Attention<float> causal{.mask = fovea::mask::Causal()};
  fovea::attention_forward(fovea::Context(), causal, {qk, qk, values},
                           {.o = fovea::View<float>::contiguous(o, 1, 2, 1, 2)});
  std::printf("%g %g\n%g %g\n", o[0], o[1], o[2], o[3]);

  // The second token has the scores 1 / sqrt(2) and 2 / sqrt(2).
  const double w = 1 / (1 + std::exp(-std::sqrt(0.5)));
  const bool right = o[0] == 1 && o[1] == 2 && std::abs(o[2] - (1 + 2 * w)) < 1e-5;

  const std::vector<float> slopes = fovea::alibi_slopes(1);
  const std::vector<std::int32_t> offsets = {0, 1, 2};
  const fovea::Attention<float> packed{.bias = fovea::bias::Alibi<float>(slopes),
                                       .packed = {offsets, offsets}};
  fovea::attention_forward(fovea::Context(), packed, {qk, qk, values},
                           {.o = fovea::View<float>::contiguous(o, 1, 2, 1, 2)});
  const bool alone = o[0] == 1 && o[1] == 2 && o[2] == 3 && o[3] == 4;
  return right && alone ? 0 : 1;
}
