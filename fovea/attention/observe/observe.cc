// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/observe/observe.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace fovea {

template <class T>
index Observer<T>::state_size(const Sequence& sequence) const {
  return sequence.keys;
}

template <class T>
void Observer<T>::start(Rows<T> state) const {
  for (index n = 0; n < state.rows; ++n) {
    std::fill_n(state[n], state.columns, -std::numeric_limits<T>::infinity());
  }
}

template <class T>
bool Observer<T>::sees(const ObservedQueries<T>&) const {
  return true;
}

template <class T>
void Observer<T>::see(const ObservedTile<T>& tile, Rows<T> state) const {
  for (index c = 0; c < tile.site.keys; ++c) {
    for (index r = 0; r < tile.site.queries; ++r) {
      state[tile.site.key + c][r] = tile.scores.at(r, c);
    }
  }
}

template <class T>
void Observer<T>::finish(const ObservedQueries<T>& queries, Rows<const T> state) const {
  const index S = queries.sequence.keys;
  std::vector<T> scores(static_cast<std::size_t>(S)), weights(scores.size());
  for (index r = 0; r < queries.queries; ++r) {
    for (index j = 0; j < S; ++j) {
      const auto at = static_cast<std::size_t>(j);
      scores[at] = state[j][r];
      weights[at] = queries.weight(r, scores[at]);
    }
    row({queries.sequence,
         queries.head,
         queries.query + r,
         {scores.data(), S},
         {weights.data(), S},
         queries.lse(r),
         queries.dropout});
  }
}

template <class T>
bool Observer<T>::sees_columns() const {
  return false;
}

template <class T>
void Observer<T>::columns(const ObservedColumns&) const {}

template <class T>
void Observer<T>::name_memory(OverlapCheck&) const {}

template <class T>
void Observer<T>::check_shape(const AttentionSizes&) const {}

template class Observer<float>;
template class Observer<double>;

}  // namespace fovea
