// SPDX-License-Identifier: Apache-2.0
// For biases that depend on the distance of key and query alone: in a tile, one value for each
// diagonal. Compiled for every instruction set.
#pragma once

#include "fovea/attention/tile.h"

namespace fovea::detail {

/// The distances j - p of a tile, p the position of the query: first, first + 1, ...
struct TileDistances {
  index first;
  index count;
};
TileDistances distances_of(const TileSite& site);

/// score += values[n] where j - p is the n-th of distances_of(site).
template <class T>
void add_by_distance(const TileSite& site, const T* values, const ScoreTile<T>& tile);

/// sums[n] = sum of the tile's values where j - p is the n-th of distances_of(site). The tile has
/// keys in its lanes.
template <class T>
void sum_by_distance(const TileSite& site, const ScoreTile<T>& tile, double* sums);

}  // namespace fovea::detail
