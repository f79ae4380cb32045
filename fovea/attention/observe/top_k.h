// SPDX-License-Identifier: Apache-2.0
// The keys with the largest weights of each query.
#pragma once

#include <cstdint>
#include <string>

#include "fovea/attention/observe/observe.h"

namespace fovea::observe {

/// The K keys of largest score, and so of largest weight, of each row, and their weights before
/// dropout. Descending; of equal scores the smaller key first. Keys are numbered from the start of
/// their sequence. If a row keeps fewer keys, the rest is -1, with weight 0. If a score is NaN or
/// has overflowed to +infinity, all are -1, with weight NaN. Costs a comparison per score, and
/// about K log(S / K) insertions per row.
template <class T>
class TopK final : public Observer<T> {
 public:
  /// Both are [B, H, T, K].
  TopK(ScoreView<std::int32_t> keys, ScoreView<T> weights) : keys_(keys), weights_(weights) {}
  void row(const ObservedRow<T>& row) const override;
  void clear() const override;
  index state_size(const Sequence& sequence) const override;
  void start(Rows<T> state) const override;
  void see(const ObservedTile<T>& tile, Rows<T> state) const override;
  void finish(const ObservedQueries<T>& queries, Rows<const T> state) const override;
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override;

 private:
  void write(const Sequence& sequence, index head, index i, index n, index key, T weight) const;

  ScoreView<std::int32_t> keys_;
  ScoreView<T> weights_;
};

}  // namespace fovea::observe
