// SPDX-License-Identifier: Apache-2.0
// Three numbers that describe the weights of each head of a map.
#pragma once

#include <vector>

#include "fovea/report/attention_page.h"
#include "fovea/report/weight_code.h"

namespace fovea {

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
