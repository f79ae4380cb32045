// SPDX-License-Identifier: Apache-2.0
// Observers of one number for each row of weights, or for each column.
#pragma once

#include <string>
#include <string_view>

#include "fovea/attention/observe/observe.h"

namespace fovea::detail {

/// Base of observers of one number per row. Holds a view of the caller's memory, [B, H, T].
template <class T>
class RowNumber : public Observer<T> {
 public:
  void clear() const final;
  void check_shape(const AttentionSizes& sizes) const final;
  void name_memory(OverlapCheck& memory) const final;

 protected:
  /// `padding`: the value for rows of padding. `label`: the name of `to` in messages.
  RowNumber(RowView<T> to, T padding, std::string_view label = "what is observed")
      : to_(to), padding_(padding), label_(label) {}
  T& at(const Sequence& sequence, index head, index i) const {
    return to_.at(sequence.batch, head, sequence.query_row + i);
  }

 private:
  RowView<T> to_;
  T padding_;
  std::string_view label_;
};

}  // namespace fovea::detail

namespace fovea::observe {

/// -sum of w log w over the weights w of a row, in nats; 0 for a row that keeps no key.
template <class T>
class Entropy final : public detail::RowNumber<T> {
 public:
  explicit Entropy(RowView<T> to) : detail::RowNumber<T>(to, T{0}, "entropy") {}
  void row(const ObservedRow<T>& row) const override;
  index state_size(const Sequence&) const override { return 3; }
  void start(Rows<T> state) const override;
  void see(const ObservedTile<T>& tile, Rows<T> state) const override;
  void finish(const ObservedQueries<T>& queries, Rows<const T> state) const override;
  bool needs_softmax() const override { return true; }
  std::string name() const override { return "entropy"; }
};

/// The largest score of a row, after bias and mask; -infinity if the row keeps no key, and NaN if a
/// score is NaN or has overflowed to +infinity.
template <class T>
class Maximum final : public detail::RowNumber<T> {
 public:
  explicit Maximum(RowView<T> to);
  void row(const ObservedRow<T>& row) const override;
  index state_size(const Sequence&) const override { return 0; }
  void start(Rows<T>) const override {}
  bool sees(const ObservedQueries<T>&) const override { return false; }
  void see(const ObservedTile<T>&, Rows<T>) const override {}
  void finish(const ObservedQueries<T>& queries, Rows<const T> state) const override;
  std::string name() const override { return "maximum"; }
};

/// Mean distance: sum of w |p - j|, p the position of the query; 0 if it keeps no key.
template <class T>
class Distance final : public detail::RowNumber<T> {
 public:
  explicit Distance(RowView<T> to) : detail::RowNumber<T>(to, T{0}, "distance") {}
  void row(const ObservedRow<T>& row) const override;
  index state_size(const Sequence&) const override { return 1; }
  void start(Rows<T> state) const override;
  void see(const ObservedTile<T>& tile, Rows<T> state) const override;
  void finish(const ObservedQueries<T>& queries, Rows<const T> state) const override;
  bool needs_softmax() const override { return true; }
  std::string name() const override { return "distance"; }
};

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
