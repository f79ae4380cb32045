// SPDX-License-Identifier: Apache-2.0
// What the vectors of a batch of texts lose: their cosines should be high where texts belong
// together, or have the order of scores.
#pragma once

#include <cstdint>
#include <span>

#include "fovea/base/view.h"
#include "fovea/grad/tape.h"

namespace fovea {

struct VectorLossOptions {
  double temperature = 0.05;
  double scale = 1;
  /// The loss is the sum of those of the first so many columns, each (Matryoshka representation
  /// learning, Kusupati et al. 2022); none: of all columns.
  std::span<const index> columns = {};
};

/// n anchors, and m texts of which text i belongs to anchor i. All members are views.
struct RankedTexts {
  Vec<const std::int32_t> anchors = {};     ///< [n] rows of the vectors
  Vec<const std::int32_t> candidates = {};  ///< [m] rows of the vectors, m >= n
  /// [n m], row by row: 1 where a candidate is left out, for it is not known not to belong to the
  /// anchor
  Vec<const std::uint8_t> left_out = {};
};

/// InfoNCE (van den Oord et al. 2018) with the other candidates as negatives (Henderson et al.
/// 2017): scale x the sum over anchors i of -log softmax_j(cos(anchor i, candidate j) /
/// temperature)[i]: vectors [N, C] -> [1, 1].
Variable ranking_loss(Tape& tape, Variable vectors, const RankedTexts& texts,
                      const VectorLossOptions& options);

/// Pairs of texts, and how much alike they are.
struct ScoredTexts {
  Vec<const std::int32_t> first = {}, second = {};  ///< [n] rows of the vectors
  Vec<const float> scores = {};                     ///< [n]
};

/// CoSENT (Su 2022): cosent_loss() of the cosines of the pairs: vectors [N, C] -> [1, 1].
Variable similarity_loss(Tape& tape, Variable vectors, const ScoredTexts& texts,
                         const VectorLossOptions& options);

}  // namespace fovea
