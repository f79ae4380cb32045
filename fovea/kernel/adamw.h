// SPDX-License-Identifier: Apache-2.0
// Adam with decoupled weight decay (Kingma, Ba 2015, algorithm 1; Loshchilov, Hutter 2019,
// algorithm 2), and clipping by the global norm (Pascanu, Mikolov, Bengio 2013, algorithm 1).
//
// Updates that are made when a row is read: a row without a gradient still moves: its moments
// decay, and its values follow them and the weight decay. All that depends only on the row and on a
// few numbers of the update. So an update need not touch such a row: before the row is read, all
// updates that it has missed are made in registers, with the operations of adamw() and its bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;  ///< outside the root, as in PyTorch
  double weight_decay = 0;
};

/// Row `row` of a table has its gradient in row `place` of a list.
struct GradientRow {
  std::int32_t row = 0, place = 0;
};

/// One parameter with its gradient and moments, all of one size. `decay` multiplies weight_decay:
/// it is 0 for gains, biases and other parameters without decay.
///
/// With `columns` > 0 the parameter is a table of rows of so many columns, and `gradient` holds
/// `rows` alone, [rows.size, columns], ascending by `row`: all others have a gradient of zero, are
/// not touched, and are for adamw_catch_up (kernel/adamw.h).
template <class T>
struct AdamWSlot {
  Vec<T> value = {};
  Vec<const T> gradient = {};
  Vec<T> m = {};
  Vec<T> v = {};
  double decay = 1;
  Vec<const GradientRow> rows = {};
  index columns = 0;
};

struct AdamWStep {
  AdamWOptions options = {};
  index step = 1;             ///< 1 for the first update: the exponent of the bias corrections
  double gradient_scale = 1;  ///< multiplies every gradient as it is read: clip_scale()
};

/// One update, in one pass over memory:
///   g = gradient_scale * gradient;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///   value -= lr (m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + epsilon)
///                + decay weight_decay value).
/// Throws Error if the sizes of a slot disagree or its rows do not ascend within the table (kShape)
/// or step < 1 (kOptionValue).
template <class T>
void adamw(const Context& ctx, std::span<const AdamWSlot<T>> slots, const AdamWStep& step);

/// The square root of the sum of squares of all gradients, summed in double in a fixed order; the
/// rest of a slot is not read. Inf or NaN if any gradient is (or if the sum overflows): then skip
/// the update. A slot with rows gives the bits of the whole gradient.
template <class T>
double global_norm(const Context& ctx, std::span<const AdamWSlot<T>> slots);

/// The factor for all gradients that makes their norm at most `limit`: limit / norm if norm >
/// limit, else 1. A limit <= 0 means no clipping.
double clip_scale(double norm, double limit);

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
