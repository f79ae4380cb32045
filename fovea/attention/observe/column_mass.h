// SPDX-License-Identifier: Apache-2.0
// How much attention each key receives.
#pragma once

#include <string>

#include "fovea/attention/observe/observe.h"

namespace fovea::observe {

/// The sum over all queries of the final weights of each key, before dropout; 0 for padding. Summed
/// in double, queries ascending. A query whose softmax is NaN makes every key that it keeps NaN.
/// Weights are final when their row is complete, so the scores are computed a second time.
template <class T>
class ColumnMass final : public Observer<T> {
 public:
  /// `mass` is [B, H, S].
  explicit ColumnMass(RowView<T> mass) : mass_(mass) {}
  /// Adds to the mass: for one row after another, as the plain reference does.
  void row(const ObservedRow<T>& row) const override;
  void clear() const override;
  index state_size(const Sequence&) const override { return 0; }
  void start(Rows<T>) const override {}
  bool sees(const ObservedQueries<T>&) const override { return false; }
  void see(const ObservedTile<T>&, Rows<T>) const override {}
  void finish(const ObservedQueries<T>&, Rows<const T>) const override {}
  bool sees_columns() const override { return true; }
  void columns(const ObservedColumns& columns) const override;
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "column_mass"; }

 private:
  RowView<T> mass_;
};

}  // namespace fovea::observe
