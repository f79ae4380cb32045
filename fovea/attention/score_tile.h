// SPDX-License-Identifier: Apache-2.0
// What happens to a tile of scaled scores, forward and backward: the only place where it does.
#pragma once

#include "fovea/attention/attention.h"

namespace fovea {

/// A tile of scores, and what goes with it.
template <class T>
struct TileScores {
  TileSite site;
  TileKind kind;
  TileRows<T> rows;
  ScoreTile<T> tile;
  T* inputs;        ///< room for what kept_inputs() parts read, a tile each; null: it is not kept
  index tile_size;  ///< values from one such tile to the next
};

/// Bias parts in order, then the mask. What each part that needs_scores() read goes to `inputs`.
template <class T>
void transform_scores(const Attention<T>& attention, const TileScores<T>& scores);

/// Undoes the bias parts, last to first: the tile holds the gradient of the final scores and
/// becomes that of the scaled ones. `gradients.parameters` holds the sums of all parts, one after
/// another.
template <class T>
void pull_scores(const Attention<T>& attention, const TileScores<T>& dscores,
                 const TileGradients<T>& gradients);

/// Values that the gradients of all bias parts need for one head.
template <class T>
index bias_gradient_size(const Bias<T>& bias) {
  index size = 0;
  for (const auto& part : bias.parts()) size += part->gradient_size();
  return size;
}

/// Parts whose scores transform_scores must keep for pull_scores.
template <class T>
index kept_inputs(const Bias<T>& bias) {
  index count = 0;
  for (const auto& part : bias.parts()) count += part->needs_scores() ? 1 : 0;
  return count;
}

}  // namespace fovea
