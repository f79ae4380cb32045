// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/score_tile.h"

#include <algorithm>

namespace fovea::detail {

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
  index kept = parts_with_scores(attention.bias);
  double* sums = gradients.parameters + gradient_size_of(attention.bias);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if ((*part)->needs_scores()) --kept;
    sums -= (*part)->gradient_size();
    const ScoreTile<T> scores{inputs + kept * tile_size, tile.stride, tile.lanes};
    (*part)->pull(site, rows, scores, tile, {gradients.dq, gradients.dk, sums});
  }
}

template <class T>
void add_values(const Values<T>& values, const TileSite& site, const ScoreTile<const T>& weights,
                Rows<T> o) {
  for (const auto& part : values.parts()) part->apply(site, weights, o);
}

template <class T>
void pull_value_weights(const Values<T>& values, const TileSite& site, Rows<const T> d_o, T factor,
                        const ScoreTile<T>& dweights) {
  for (const auto& part : values.parts()) part->pull_weights(site, d_o, factor, dweights);
}

template <class T>
void pull_value_parameters(const Values<T>& values, const TileSite& site,
                           const ScoreTile<const T>& weights, Rows<const T> d_o, double* sums) {
  for (const auto& part : values.parts()) {
    part->pull_parameters(site, weights, d_o, sums);
    sums += part->gradient_size();
  }
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void transform_scores(const Attention<T>&, const TileScores<T>&);                       \
  template void pull_scores(const Attention<T>&, const TileScores<T>&, const TileGradients<T>&);   \
  template void add_values(const Values<T>&, const TileSite&, const ScoreTile<const T>&, Rows<T>); \
  template void pull_value_weights(const Values<T>&, const TileSite&, Rows<const T>, T,            \
                                   const ScoreTile<T>&);                                           \
  template void pull_value_parameters(const Values<T>&, const TileSite&,                           \
                                      const ScoreTile<const T>&, Rows<const T>, double*);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
