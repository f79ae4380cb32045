// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score_tile.h"

#include <algorithm>

namespace fovea {

template <class T>
void transform_scores(const Attention<T>& attention, const TileSite& site, TileKind kind,
                      const TileRows<T>& rows, const ScoreTile<T>& tile, T* inputs,
                      index tile_size) {
  const index tile_rows = tile.lanes == TileLanes::kQueries ? site.keys : site.queries;
  for (const auto& part : attention.bias.parts()) {
    if (inputs != nullptr && part->needs_scores()) {
      std::copy_n(tile.data, tile_rows * tile.stride, inputs);
      inputs += tile_size;
    }
    part->apply(site, rows, tile);
  }
  if (kind == TileKind::kSome) attention.mask.apply(site, tile);
}

template <class T>
void pull_scores(const Attention<T>& attention, const TileSite& site, const TileRows<T>& rows,
                 const T* inputs, index tile_size, const ScoreTile<T>& dscores,
                 const TileGradients<T>& gradients) {
  const auto& parts = attention.bias.parts();
  index kept = kept_inputs(attention.bias);
  double* sums = gradients.parameters + bias_gradient_size(attention.bias);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if ((*part)->needs_scores()) --kept;
    sums -= (*part)->gradient_size();
    // The tile is read only: the part sees what it read in the forward.
    const ScoreTile<T> scores{const_cast<T*>(inputs) + kept * tile_size, dscores.stride,
                              dscores.lanes};
    (*part)->pull(site, rows, scores, dscores, {gradients.dq, gradients.dk, sums});
  }
}

template void transform_scores(const Attention<float>&, const TileSite&, TileKind,
                               const TileRows<float>&, const ScoreTile<float>&, float*, index);
template void transform_scores(const Attention<double>&, const TileSite&, TileKind,
                               const TileRows<double>&, const ScoreTile<double>&, double*, index);
template void pull_scores(const Attention<float>&, const TileSite&, const TileRows<float>&,
                          const float*, index, const ScoreTile<float>&,
                          const TileGradients<float>&);
template void pull_scores(const Attention<double>&, const TileSite&, const TileRows<double>&,
                          const double*, index, const ScoreTile<double>&,
                          const TileGradients<double>&);

}  // namespace fovea
