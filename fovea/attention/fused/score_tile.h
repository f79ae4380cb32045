// SPDX-License-Identifier: Apache-2.0
// Applies the parts of a call to a tile of scores and weights, forward and backward. All kernels
// use these functions.
#pragma once

#include "fovea/attention/fused/kernel_call.h"

namespace fovea::detail {

/// A tile of scores, with its rows and the copies that the backward needs.
template <class T>
struct TileScores {
  TileSite site;
  TileKind kind;
  TileRows<T> rows;
  ScoreTile<T> tile;
  T* inputs;  ///< the scores that each of parts_with_scores() read, one tile per part, or null
  index tile_size;  ///< values from one such tile to the next
};

/// Bias parts in order, then the mask. Scores read by parts with needs_scores() go to `inputs`.
template <class T>
void transform_scores(const Attention<T>& attention, const TileScores<T>& scores);

/// Backward of the bias parts, last to first: the tile holds the gradient of the final scores and
/// becomes that of the scaled ones. `gradients.parameters` holds the sums of all parts, one after
/// another.
template <class T>
void pull_scores(const Attention<T>& attention, const TileScores<T>& dscores,
                 const TileGradients<T>& gradients);

/// Adds the weighted vectors of the value parts of a tile: o[c][r], c of Dv, r of the queries.
template <class T>
void add_values(const Values<T>& values, const TileSite& site, const ScoreTile<const T>& weights,
                Rows<T> o);

/// Adds factor d_o . c to the gradient of the weights.
template <class T>
void pull_value_weights(const Values<T>& values, const TileSite& site, Rows<const T> d_o, T factor,
                        const ScoreTile<T>& dweights);

/// Adds to the sums of all value parts, one after another.
template <class T>
void pull_value_parameters(const Values<T>& values, const TileSite& site,
                           const ScoreTile<const T>& weights, Rows<const T> d_o, double* sums);

/// Number of sums per head for the gradients of all parts.
template <class Family>
index gradient_size_of(const Parts<Family>& parts) {
  index size = 0;
  for (const auto& part : parts.parts()) size += part->gradient_size();
  return size;
}

/// Parts that read the score again in the backward: transform_scores stores it for them.
template <class T>
index parts_with_scores(const Bias<T>& bias) {
  index count = 0;
  for (const auto& part : bias.parts()) count += part->needs_scores() ? 1 : 0;
  return count;
}

}  // namespace fovea::detail
