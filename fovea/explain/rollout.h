// SPDX-License-Identifier: Apache-2.0
// Attention rollout (Abnar & Zuidema 2020, "Quantifying attention flow in transformers", section
// 3).
#pragma once

#include <span>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// One layer: its weights, and whether its result is added to its input. T tokens are sequences of
/// n = T / sequences, one after another; `across`, token t of sequence s is number t sequences + s.
struct RolloutLayer {
  std::span<const float> weights;  ///< [sequences, heads, n, n], rows that sum to 1, or to 0
  index heads = 0;
  bool residual = true;
  index sequences = 1;
  bool across = false;
};

/// [T]: how much of each token arrives in the mixture `result` [T] of the last layer's rows:
///
///   r = result A_L ... A_1,  A_l = (W_l + I) / 2 with a residual sum, else W_l
///
/// W_l is the mean over the heads. A row that keeps no key passes on itself alone with a residual
/// sum, and nothing without.
std::vector<float> attention_rollout(std::span<const RolloutLayer> layers,
                                     std::span<const double> result);

}  // namespace fovea
