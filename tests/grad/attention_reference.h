// SPDX-License-Identifier: Apache-2.0
// Causal attention in plain loops, with all that the op's operands offer; its dropout is written
// from the words of docs/formulas.md.
#pragma once

#include "tests/grad/op_references.h"

namespace fovea {

/// H heads that share G heads of keys; the rows are one sequence, or the three of kOffsets.
struct AttentionForm {
  index H = 1, G = 1;
  enum class Sequences { kOne, kThree } sequences = Sequences::kOne;
  enum class Weights { kWhole, kDropped } weights = Weights::kWhole;
};

inline bool weight_is_dropped(std::uint64_t sample, index h, index i, index j) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto [seed, step, layer] = kDropoutKey;
  const auto use = static_cast<std::uint32_t>(RandomUse::kDropout);
  const auto a = philox4x32({low(step), high(step), layer, use}, {low(seed), high(seed)});
  const auto b =
      philox4x32({low(sample), high(sample), static_cast<std::uint32_t>(h), a[2]}, {a[0], a[1]});
  const auto query = static_cast<std::uint32_t>(i), key = static_cast<std::uint32_t>(j);
  const auto words = philox4x32({query, key / 8, b[2], b[3]}, {b[0], b[1]});
  const std::uint64_t bits = words[key % 8 / 2] >> (key % 2 * 16) & 0xFFFFu;
  const auto tie = philox4x32({query, key, b[2], ~b[3]}, {b[0], b[1]});
  return static_cast<double>(bits << 32 | tie[0]) < kDropoutRate * 0x1p48;
}

/// q [N, H D], k [N, G D], v [N, G Dv], perhaps slopes [1, H] -> [N, H Dv].
template <class T>
void attention_in_loops(const AttentionForm& form, Matrices<T> in, Rows<T> y) {
  using std::exp;
  const auto [H, G, sequences, weights] = form;
  const bool three = sequences == AttentionForm::Sequences::kThree;
  const index D = in[0].columns / H, Dv = in[2].columns / G;
  fill(y, [](index, index) { return T(0); });
  for (index row = 0; row < y.rows * H; ++row) {
    const index n = row / H, h = row % H, g = h * G / H;
    const std::size_t s = three && n >= kOffsets[2] ? 2 : 0;
    const index first = three ? kOffsets[s] : 0;
    T total = T(0);
    for (index m = first; m <= n; ++m) {
      T score = T(0);
      for (index d = 0; d < D; ++d) score += in[0][n][h * D + d] * in[1][m][g * D + d];
      score /= T(std::sqrt(static_cast<double>(D)));
      if (in.size() > 3) score += in[3][0][h] * T(static_cast<double>(m - n));
      const T weight = exp(score);
      total += weight;
      const bool drops = weights == AttentionForm::Weights::kDropped;
      if (drops && weight_is_dropped(kSamples[s], h, n - first, m - first)) continue;
      for (index d = 0; d < Dv; ++d) y[n][h * Dv + d] += weight * in[2][m][g * Dv + d];
    }
    if (weights == AttentionForm::Weights::kDropped) total *= T(1 - kDropoutRate);
    for (index d = 0; d < Dv; ++d) y[n][h * Dv + d] /= total;
  }
}

template <int heads, AttentionForm::Sequences sequences>
struct AttentionFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    attention_in_loops<T>({.H = heads, .G = heads, .sequences = sequences}, in, y);
  }
};

/// Columns of one matrix: 2 heads of 3, one shared head of keys, values of 2.
struct FusedAttentionFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    const Rows<const T> parts[] = {in[0].columns_slice(0, 6), in[0].columns_slice(6, 9),
                                   in[0].columns_slice(9, 11)};
    attention_in_loops<T>({.H = 2,
                           .G = 1,
                           .sequences = AttentionForm::Sequences::kThree,
                           .weights = AttentionForm::Weights::kDropped},
                          parts, y);
  }
};

}  // namespace fovea
