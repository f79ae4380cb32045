// SPDX-License-Identifier: Apache-2.0
// The weights of an attention page: for its scripts, and as numbers that describe each head.
#pragma once

#include <vector>

#include "fovea/report/attention_page.h"
#include "fovea/report/weight_code.h"

namespace fovea {

/// Head `head` of a map.
HeadWeights head_of(const AttentionPage& page, const AttentionMap& map, index head);

/// The decimals and the strongest weights of the page, so that its weights take at most `fine` or
/// `most` bytes.
WeightDigits choose_digits(const AttentionPage& page, const PageLimits& limits);

/// For a page that became too large all the same: a tenth fewer weights of each row. False if there
/// is but one.
bool keep_fewer(const AttentionPage& page, WeightDigits& digits);

/// The masks of all heads; the same mask is stored once.
struct CodedMasks {
  PageData data;                      ///< `masks`
  std::vector<std::size_t> of_heads;  ///< the number of each head's mask, map after map
};
CodedMasks code_masks(const AttentionPage& page);

/// The data that the scripts read: `map-N` for each map.
std::vector<PageData> code_maps(const AttentionPage& page, const WeightDigits& digits,
                                const CodedMasks& masks);

/// The numbers of each head; the means are over the queries that keep a key.
struct HeadMeans {
  std::vector<float> entropy;   ///< - sum of w log w, in nats
  std::vector<float> distance;  ///< sum of w |p - j|
  std::vector<float> largest;   ///< the weight of strongest_cell()
};

/// Number of the cell whose weight is farthest from 0, the first of equal ones. A query that keeps
/// one key alone, as the first of a causal map, has no choice: it counts only if there is no other.
index strongest_cell(const HeadWeights& head);

/// The means that the map gives, and the others from its weights.
HeadMeans head_means(const AttentionPage& page, const AttentionMap& map);

}  // namespace fovea
