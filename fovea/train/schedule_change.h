// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fovea/train/options.h"
#include "fovea/train/run_state.h"

namespace fovea {

/// Describes how the learning rate changes when a run goes on with other options: "the schedule
/// changes: learning rate 0.0001 -> 0.0006 at update 2001"; "" if it does not. If it jumps because
/// the run was made longer, the text also lists options that continue from the learning rate that
/// was reached.
std::string schedule_change(const TrainOptions& before, const TrainOptions& now,
                            index updates_per_epoch, const RunState& state);

}  // namespace fovea
