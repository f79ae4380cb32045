// SPDX-License-Identifier: Apache-2.0
// Estimates how long a run of any kind will take.
#pragma once

#include <functional>

#include "fovea/base/context.h"
#include "fovea/task/training_task.h"

namespace fovea {

/// How many evaluations a run of `updates` has after `done` of them.
index evaluations_to_come(const TrainOptions& recipe, index updates, index updates_per_epoch,
                          index done);

struct TimedRun {
  const TrainOptions& recipe;
  RunCost cost = {};
  /// Updates that are still to be done, evaluations counted as the updates that take as long.
  std::function<double()> updates_to_come;
  std::function<bool()> fits;  ///< whether the run fits into memory, so that updates can be tried
  /// Calls the function with an objective of a new model.
  std::function<void(const std::function<void(Objective&)>&)> with_objective;
};

/// The time after `done`. Tries updates where these are short, else reckons from measured speeds.
RunTime estimate_time(const Context& context, const TimedRun& run, const RunState& done);

}  // namespace fovea
