// SPDX-License-Identifier: Apache-2.0
// The observers of one query tile of the forward, and their state until it is complete.
#pragma once

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

template <class T>
class TileObservers {
 public:
  /// `queries`: the tile, whose rows of scores have `stride` values.
  TileObservers(const Observe<T>& observe, const ObservedQueries<T>& queries, index stride,
                Scratch& scratch);

  /// The scores of a block of keys, [keys][stride], before they become weights.
  void keep(const T* scores, index keys);
  /// The weights that they became, in the same layout.
  void see(const T* weights, index key, index keys, const T* rescale) const;
  void finish() const;

 private:
  Rows<T> state_of(const Observer<T>& observer, T*& from) const;

  const Observe<T>& observe_;
  ObservedQueries<T> queries_;
  index stride_;
  bool seen_ = false;  // does any observer look at the tiles of these queries?
  T* scores_ = nullptr;
  T* state_ = nullptr;
};

/// Number of values that the observers store per tile.
template <class T>
index observer_values(const Observe<T>& observe, const Sequence& sequence, index stride);

}  // namespace fovea::detail
