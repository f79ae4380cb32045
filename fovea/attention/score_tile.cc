// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score_tile.h"

#include <algorithm>

namespace fovea {

template <class T>
void transform_scores(const Attention<T>& attention, const TileScores<T>& scores) {
  const auto& [site, kind, rows, tile, inputs, tile_size] = scores;
  const index tile_rows = tile.lanes == TileLanes::kQueries ? site.keys : site.queries;
  T* input = inputs;
  for (const auto& part : attention.bias.parts()) {
    if (input != nullptr && part->needs_scores()) {
      std::copy_n(tile.data, tile_rows * tile.stride, input);
      input += tile_size;
    }
    part->apply(site, rows, tile);
  }
  if (kind == TileKind::kSome) attention.mask.apply(site, tile);
}

template <class T>
void pull_scores(const Attention<T>& attention, const TileScores<T>& dscores,
                 const TileGradients<T>& gradients) {
  const auto& [site, kind, rows, tile, inputs, tile_size] = dscores;
  const auto& parts = attention.bias.parts();
  index kept = kept_inputs(attention.bias);
  double* sums = gradients.parameters + bias_gradient_size(attention.bias);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if ((*part)->needs_scores()) --kept;
    sums -= (*part)->gradient_size();
    const ScoreTile<T> scores{inputs + kept * tile_size, tile.stride, tile.lanes};
    (*part)->pull(site, rows, scores, tile, {gradients.dq, gradients.dk, sums});
  }
}

template void transform_scores(const Attention<float>&, const TileScores<float>&);
template void transform_scores(const Attention<double>&, const TileScores<double>&);
template void pull_scores(const Attention<float>&, const TileScores<float>&,
                          const TileGradients<float>&);
template void pull_scores(const Attention<double>&, const TileScores<double>&,
                          const TileGradients<double>&);

}  // namespace fovea
