// SPDX-License-Identifier: Apache-2.0
// Observers of single weights: those of chosen queries, the largest of each, and those that
// dropout keeps.
#pragma once

#include <cstdint>
#include <string>

#include "fovea/attention/observe/observe.h"

namespace fovea::observe {

/// The final weights, before dropout, of rows [begin, end) of q: rows and columns are numbered as
/// in the views, through all packed sequences. 0 where masked, in columns of other sequences, and
/// in rows of padding. Writes the chosen rows; costs nothing for others.
template <class T>
class SelectedRows final : public Observer<T> {
 public:
  /// `weights` is [B, H, end - begin, S].
  SelectedRows(index begin, index end, ScoreView<T> weights)
      : begin_(begin), end_(end), weights_(weights) {}
  void row(const ObservedRow<T>& row) const override;
  void clear() const override;
  index state_size(const Sequence&) const override { return 1; }
  void start(Rows<T> state) const override;
  bool sees(const ObservedQueries<T>& queries) const override { return chosen(queries).rows > 0; }
  void see(const ObservedTile<T>& tile, Rows<T> state) const override;
  void finish(const ObservedQueries<T>& queries, Rows<const T> state) const override;
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override;

 private:
  Rows<T> chosen(const ObservedQueries<T>& queries) const;
  index first_chosen(const ObservedQueries<T>& queries) const;

  index begin_, end_;
  ScoreView<T> weights_;
};

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

/// 1 where dropout keeps a weight, as defined by `drops` in dropout.h; 0 where dropout or the
/// mask drops it (or a score is -infinity), and in rows and columns of padding.
template <class T>
class DropoutKeep final : public Observer<T> {
 public:
  /// `keep` is [B, H, T, S].
  explicit DropoutKeep(ScoreView<std::uint8_t> keep) : keep_(keep) {}
  void row(const ObservedRow<T>& row) const override;
  void clear() const override;
  index state_size(const Sequence&) const override { return 0; }
  void start(Rows<T>) const override {}
  void see(const ObservedTile<T>& tile, Rows<T> state) const override;
  void finish(const ObservedQueries<T>&, Rows<const T>) const override {}
  void name_memory(OverlapCheck& memory) const override;
  void check_shape(const AttentionSizes& sizes) const override;
  std::string name() const override { return "dropout_keep"; }

 private:
  std::uint8_t* row_of(const Sequence& sequence, index head, index i) const {
    return keep_.row(sequence.batch, head, sequence.query_row + i) + sequence.key_row;
  }

  ScoreView<std::uint8_t> keep_;
};

}  // namespace fovea::observe
