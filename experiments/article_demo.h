// SPDX-License-Identifier: Apache-2.0
// The examples of two articles, with the shape of every step. Their random numbers are those of
// PyTorch after torch.manual_seed(seed).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/report/html.h"

namespace fovea {

/// `demo transformer-3`, part 4 of the article "transformer-3": multi-head attention with a causal
/// mask, d = 8, n = 3, B = 6, h = 2. The input is drawn first, then one matrix with its bias, which
/// all four projections have, as the article's copies of a layer do. There is no dropout, since
/// PyTorch draws other masks on other machines.
struct MultiHeadDemo {
  static constexpr index kBatch = 6, kLength = 3, kWidth = 8, kHeads = 2;

  std::uint64_t seed = 0;
  std::array<index, 3> shape{};     ///< of the output
  std::vector<float> input = {};    ///< [B, n, d]
  std::vector<float> output = {};   ///< [B, n, d]
  std::vector<float> weights = {};  ///< [h, n, n] of the first sentence
};

MultiHeadDemo multi_head_demo(const Context& context, std::uint64_t seed);
std::string demo_text(const MultiHeadDemo& demo, PageLanguage language);

/// `demo padding-mask`, the example of the article "如何在计算 Attention Score 时对 Padding 做 Mask
/// 操作": attention with a boolean padding mask, true = valid, [2, 5] for Q, K, V [2, 5, 64].
struct PaddingDemo {
  static constexpr index kBatch = 2, kLength = 5, kWidth = 64;

  std::uint64_t seed = 0;
  std::array<index, 3> shape{};        ///< of the output
  std::vector<float> input = {};       ///< Q, K, V, [B, n, d] each
  std::vector<float> output = {};      ///< [B, n, d]
  std::vector<float> weights = {};     ///< [B, n, n]
  bool padding_has_no_effect = false;  ///< NaN in the padding of K and V changes no bit
};

PaddingDemo padding_demo(const Context& context, std::uint64_t seed);
std::string demo_text(const PaddingDemo& demo, PageLanguage language);

}  // namespace fovea
