// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fovea/train/options.h"
#include "fovea/train/run_state.h"

namespace fovea {

/// What happens to the learning rate where a run goes on with other options: "the schedule changes:
/// learning rate 0.0001 -> 0.0006 at update 2001"; "" if nothing does. Where it jumps because the
/// run was made longer, the options follow that go on from the learning rate that was reached.
std::string schedule_change(const TrainOptions& before, const TrainOptions& now,
                            index updates_per_epoch, const RunState& state);

}  // namespace fovea
