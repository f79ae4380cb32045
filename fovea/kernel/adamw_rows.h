// SPDX-License-Identifier: Apache-2.0
// Updates of AdamW that are made when a row is read.
//
// A row without a gradient still moves: its moments decay, and its values follow them and the
// weight decay. All that depends only on the row and on a few numbers of the update. So an update
// need not touch such a row: before the row is read, all updates that it has missed are made in
// registers, with the operations of adamw() and its bits.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/kernel/adamw.h"

namespace fovea {

/// The updates that rows of one table may have missed. They share beta1, beta2 and epsilon; the
/// betas are in [0, 1].
template <class T>
class AdamWHistory {
 public:
  /// The numbers with which an update changes values without a gradient.
  struct Update {
    T step_size, root, shrink;
  };
  /// The largest step size and smallest root of kBlock updates, and whether any has weight decay.
  struct Block {
    T step_size, root;
    bool decays;
  };
  static constexpr index kBlock = 16;

  /// Whether `step` has the betas and the epsilon of the history, or the history is empty.
  bool takes(const AdamWStep& step) const;
  /// `decay` is that of the table's slot. Throws kOptionValue unless takes(step).
  void add(const AdamWStep& step, double decay);
  void clear() { updates_.clear(), blocks_.clear(); }

  index size() const { return static_cast<index>(updates_.size()); }
  Vec<const Update> updates() const { return updates_; }
  /// The blocks, number k for the updates [k kBlock, (k + 1) kBlock), as far as there are any.
  Vec<const Block> blocks() const { return blocks_; }
  T rate1() const { return rate1_; }  ///< 1 - beta1
  T rate2() const { return rate2_; }  ///< 1 - beta2
  T epsilon() const { return epsilon_; }

 private:
  std::vector<Update> updates_;
  std::vector<Block> blocks_;
  T rate1_ = 0, rate2_ = 0, epsilon_ = 0;
};

/// A row to which the first `made` updates of the history have been made.
struct RowBehind {
  std::int32_t row = 0, made = 0;
};

/// A table and its moments, [V,C] each.
template <class T>
struct AdamWTable {
  Rows<T> value, m, v;
};

/// Makes the updates that each of `rows` (none twice) has missed. The table has the bits that
/// adamw() gives it with gradients of zero. Throws kShape for a row that is not in the table.
template <class T>
void adamw_catch_up(const Context& ctx, const AdamWTable<T>& table, const AdamWHistory<T>& history,
                    Vec<const RowBehind> rows);

}  // namespace fovea
