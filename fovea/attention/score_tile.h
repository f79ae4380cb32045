// SPDX-License-Identifier: Apache-2.0
// What happens to a tile of scaled scores, forward and backward: the only place where it does.
#pragma once

#include "fovea/attention/attention.h"

namespace fovea {

/// Bias parts in order, then the mask. `inputs`, if not null, receives what each part that
/// needs_scores() read: one tile of the same layout after another, `tile_size` values apart.
template <class T>
void transform_scores(const Attention<T>& attention, const TileSite& site, TileKind kind,
                      const TileRows<T>& rows, const ScoreTile<T>& tile, T* inputs,
                      index tile_size);

/// Undoes the bias parts, last to first: `dscores` holds the gradient of the final scores and
/// becomes that of the scaled ones. `gradients.parameters` holds the sums of all parts, one after
/// another.
template <class T>
void pull_scores(const Attention<T>& attention, const TileSite& site, const TileRows<T>& rows,
                 const T* inputs, index tile_size, const ScoreTile<T>& dscores,
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
