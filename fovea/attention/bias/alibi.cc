// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/alibi.h"

#include <cmath>

#include "fovea/base/check.h"

namespace fovea::bias {

namespace {

// |distance| is the same from either side, so one loop serves both layouts of a tile: along a row
// of the tile the distance grows by one a lane.
struct TileAxes {
  index rows, lanes;
  index row0, lane0;  // position of the first row and the first lane
};

template <class T>
TileAxes axes(const TileSite& site, const ScoreTile<T>& tile) {
  const index p = site.sequence.position(site.query);
  if (tile.lanes == TileLanes::kQueries) return {site.keys, site.queries, site.key, p};
  return {site.queries, site.keys, p, site.key};
}

template <class T>
T distance(const ScoreSite& site) {
  return static_cast<T>(std::abs(site.position() - site.j));
}

}  // namespace

template <class T>
T Alibi<T>::value(const ScoreSite& site, T score) const {
  return score - slopes_[site.head] * distance<T>(site);
}

template <class T>
void Alibi<T>::add_parameters(const ScoreSite& site, T, T dscore, double* sums) const {
  sums[0] -= static_cast<double>(dscore) * static_cast<double>(distance<T>(site));
}

template <class T>
void Alibi<T>::store_gradient(const double* sums, index heads) const {
  for (index h = 0; h < heads && h < dslopes_.size; ++h) dslopes_[h] = static_cast<T>(sums[h]);
}

template <class T>
void Alibi<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  const TileAxes axis = axes(site, tile);
  const T slope = slopes_[site.head];
  for (index r = 0; r < axis.rows; ++r) {
    T* scores = tile.data + r * tile.stride;
    const T first = static_cast<T>(axis.lane0 - axis.row0 - r);
    for (int lane = 0; lane < static_cast<int>(axis.lanes); ++lane) {
      scores[lane] -= slope * std::abs(first + static_cast<T>(lane));
    }
  }
}

template <class T>
void Alibi<T>::pull(const TileSite& site, const TileRows<T>&, const ScoreTile<T>&,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (dslopes_.empty()) return;
  const TileAxes axis = axes(site, dscores);
  double total = 0;
  for (index r = 0; r < axis.rows; ++r) {
    const T* values = dscores.data + r * dscores.stride;
    const T first = static_cast<T>(axis.lane0 - axis.row0 - r);
    constexpr int kParts = 8;  // so that the compiler may keep the sums in lanes
    double sums[kParts] = {};
    for (int lane = 0; lane < static_cast<int>(axis.lanes); ++lane) {
      const T distance = std::abs(first + static_cast<T>(lane));
      sums[lane % kParts] += static_cast<double>(values[lane]) * static_cast<double>(distance);
    }
    for (const double part : sums) total += part;
  }
  gradients.parameters[0] -= total;
}

template <class T>
void Alibi<T>::check_shape(const AttentionSizes& sizes) const {
  const index H = sizes.H;
  check(slopes_.size == H, "attention: slopes must be [H={}]; they are [{}]", H, slopes_.size);
  check(dslopes_.empty() || dslopes_.size == H,
        "attention: dslopes must be [H={}] or empty; they are [{}]", H, dslopes_.size);
}

template class Alibi<float>;
template class Alibi<double>;

}  // namespace fovea::bias
