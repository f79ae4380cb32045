// SPDX-License-Identifier: Apache-2.0
// Shared by every training beside its model and data: its cost, and where it begins.
#pragma once

#include <optional>
#include <string>

#include "fovea/train/checkpoint.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// The cost of a run, computed before it begins.
struct RunCost {
  index parameters = 0;
  index updates = 0;  ///< 0: the run ends by hours
  index tokens_per_update = 0;
};

struct RunTime {
  double seconds = 0;  ///< of updates and evaluations; saves are not counted
  std::string basis;   ///< how it was estimated, for people
};

/// Where a run begins.
struct StartAt {
  bool resume = false;  ///< from the newest intact checkpoint; from update 0 if there is none
  std::optional<Checkpoint> checkpoint = {};  ///< from this one
  Future future = Future::kSame;              ///< see Trainer::resume
};

}  // namespace fovea
