// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/log_n_scale.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"

namespace fovea::bias {

template <class T>
LogNScale<T>::LogNScale(double reference_length, Mask mask)
    : reference_length_(reference_length), mask_(std::move(mask)) {
  if (reference_length > 1 && std::isfinite(reference_length)) return;
  fail(ErrorCode::kOptionValue,
       "log_n_scale: the reference length must be above 1 and finite; it is {}", reference_length);
}

// A query that keeps no key has no score; its factor must be finite.
template <class T>
T LogNScale<T>::factor(const Sequence& sequence, index head, index i) const {
  const index n = std::max<index>(mask_.kept_keys(sequence, head, i), 1);
  return static_cast<T>(std::log(static_cast<double>(n)) / std::log(reference_length_));
}

template <class T>
T LogNScale<T>::value(const ScoreSite& site, T score) const {
  return score * factor(site.sequence, site.head, site.i);
}

template <class T>
T LogNScale<T>::derivative(const ScoreSite& site, T) const {
  return factor(site.sequence, site.head, site.i);
}

template <class T>
void LogNScale<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  scale(site, tile);
}

template <class T>
void LogNScale<T>::pull(const TileSite& site, const TileRows<T>&, const ScoreTile<T>&,
                        const ScoreTile<T>& dscores, const TileGradients<T>&) const {
  scale(site, dscores);
}

template <class T>
void LogNScale<T>::scale(const TileSite& site, const ScoreTile<T>& tile) const {
  Scratch scratch;
  T* const factors = scratch.allocate<T>(site.queries);
  for (index r = 0; r < site.queries; ++r) {
    factors[r] = factor(site.sequence, site.head, site.query + r);
  }
  const Rows<T> rows = tile.rows(site);
  for (index r = 0; r < rows.rows; ++r) {
    T* const row = rows[r];
    if (tile.lanes == TileLanes::kQueries) {
      for (index c = 0; c < rows.columns; ++c) row[c] *= factors[c];
    } else {
      const T of_row = factors[r];
      for (index c = 0; c < rows.columns; ++c) row[c] *= of_row;
    }
  }
}

template <class T>
bool LogNScale<T>::takes_packed() const {
  const auto& parts = mask_.parts();
  return std::all_of(parts.begin(), parts.end(),
                     [](const auto& part) { return part->takes_packed(); });
}

template <class T>
void LogNScale<T>::name_parameters(OverlapCheck& memory) const {
  for (const auto& part : mask_.parts()) part->name_memory(memory);
}

template <class T>
void LogNScale<T>::check_shape(const AttentionSizes& sizes) const {
  for (const auto& part : mask_.parts()) part->check_shape(sizes);
}

template <class T>
void LogNScale<T>::start_call() const {
  for (const auto& part : mask_.parts()) part->start_call();
}

template <class T>
std::string LogNScale<T>::name() const {
  return fmt::format("log_n_scale({})", reference_length_);
}

template class LogNScale<float>;
template class LogNScale<double>;

}  // namespace fovea::bias
