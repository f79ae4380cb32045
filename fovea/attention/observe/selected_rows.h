// SPDX-License-Identifier: Apache-2.0
// The weights of chosen queries.
#pragma once

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

}  // namespace fovea::observe
