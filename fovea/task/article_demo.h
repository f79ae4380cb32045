// SPDX-License-Identifier: Apache-2.0
// The examples of two of the source articles, with the shape of every step (spec E10).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"

namespace fovea {

/// S1: multi-head attention with a causal mask, d = 8, n = 3, B = 6, h = 2 (spec M7).
struct MultiHeadDemo {
  static constexpr index kBatch = 6, kLength = 3, kWidth = 8, kHeads = 2;

  std::array<index, 3> shape{};     ///< of the output
  std::vector<float> output = {};   ///< [B, n, d]
  std::vector<float> weights = {};  ///< [h, n, n] of the first sentence
};

MultiHeadDemo multi_head_demo(const Context& context);
std::string demo_text(const MultiHeadDemo& demo);

/// S3: attention with a boolean padding mask, true = valid, [2, 5] for Q, K, V [2, 5, 64] (spec
/// M2).
struct PaddingDemo {
  static constexpr index kBatch = 2, kLength = 5, kWidth = 64;

  std::array<index, 3> shape{};        ///< of the output
  std::vector<float> output = {};      ///< [B, n, d]
  std::vector<float> weights = {};     ///< [B, n, n]
  bool padding_has_no_effect = false;  ///< the same bits with NaN in the padding of K and V
};

PaddingDemo padding_demo(const Context& context);
std::string demo_text(const PaddingDemo& demo);

}  // namespace fovea
