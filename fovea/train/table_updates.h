// SPDX-License-Identifier: Apache-2.0
// AdamW for a table of which a step uses few rows (RowUse::kSparse): the other rows are updated
// when they are read next, with the same bits (kernel/adamw.h).
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/grad/parameter.h"
#include "fovea/kernel/adamw.h"

namespace fovea {

/// The updates that rows of one parameter have missed. The parameter knows it as long as it exists;
/// its end makes what is due.
class TableUpdates final : public MissedUpdates {
 public:
  /// Both must outlive it. m and v are the moments of `parameter`, float32 [V,C].
  TableUpdates(Parameter& parameter, Tensor m, Tensor v);
  ~TableUpdates();
  TableUpdates(const TableUpdates&) = delete;
  TableUpdates& operator=(const TableUpdates&) = delete;

  void make(const Context& context, Vec<const std::int32_t> ids) override;
  void make_all() override;

  /// The slot of the next update, whose number and options are in `step`: the rows with a gradient,
  /// which are up to date. Call updated() after adamw().
  AdamWSlot<float> begin(const Context& context, const AdamWStep& step);
  void updated(const AdamWStep& step);
  /// The slot for the norm of the gradient.
  AdamWSlot<float> slot();

 private:
  AdamWTable<float> table();
  void make_behind(const Context& context);
  double decay() const { return parameter_.decay == Decay::kYes ? 1.0 : 0.0; }

  Parameter& parameter_;
  Tensor m_, v_;
  int threads_ = 1;  // of the last update
  AdamWHistory<float> history_;
  std::vector<std::int32_t> made_;  // updates of the history, by row
  std::vector<RowBehind> behind_;
};

}  // namespace fovea
