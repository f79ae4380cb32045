// SPDX-License-Identifier: Apache-2.0
// Which weights dropout keeps.
#pragma once

#include <cstdint>
#include <string>

#include "fovea/attention/observe/observe.h"

namespace fovea::observe {

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
