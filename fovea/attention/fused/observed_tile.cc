// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/observed_tile.h"

#include <algorithm>

#include "fovea/attention/fused/kernel_call.h"

namespace fovea::detail {

template <class T>
index observer_values(const Observe<T>& observe, const Sequence& sequence, index stride) {
  if (observe.empty()) return 0;
  index rows = kRowBlock;
  for (const auto& observer : observe.parts()) rows += observer->state_size(sequence);
  return rows * stride;
}

template <class T>
TileObservers<T>::TileObservers(const Observe<T>& observe, const ObservedQueries<T>& queries,
                                index stride, Scratch& scratch)
    : observe_(observe), queries_(queries), stride_(stride) {
  if (observe.empty()) return;
  scores_ = scratch.allocate<T>(observer_values(observe, queries.sequence, stride));
  state_ = scores_ + kRowBlock * stride;
  T* state = state_;
  for (const auto& observer : observe.parts()) {
    observer->start(state_of(*observer, state));
    seen_ = seen_ || observer->sees(queries);
  }
}

// The states of the observers, one after another.
template <class T>
Rows<T> TileObservers<T>::state_of(const Observer<T>& observer, T*& from) const {
  const index size = observer.state_size(queries_.sequence);
  const Rows<T> state(from, size, queries_.queries, stride_);
  from += size * stride_;
  return state;
}

template <class T>
void TileObservers<T>::keep(const T* scores, index keys) {
  if (seen_) std::copy_n(scores, keys * stride_, scores_);
}

template <class T>
void TileObservers<T>::see(const T* weights, index key, index keys, const T* rescale) const {
  if (!seen_) return;
  T* state = state_;
  for (const auto& observer : observe_.parts()) {
    const auto& [sequence, head, query, queries, maximum, sum, norm, dropout] = queries_;
    observer->see({queries_,
                   {sequence, head, query, queries, key, keys},
                   {scores_, stride_, TileLanes::kQueries},
                   {weights, stride_, TileLanes::kQueries},
                   rescale},
                  state_of(*observer, state));
  }
}

template <class T>
void TileObservers<T>::finish() const {
  T* state = state_;
  for (const auto& observer : observe_.parts()) {
    observer->finish(queries_, state_of(*observer, state));
  }
}

template class TileObservers<float>;
template class TileObservers<double>;
template index observer_values(const Observe<float>&, const Sequence&, index);
template index observer_values(const Observe<double>&, const Sequence&, index);

}  // namespace fovea::detail
