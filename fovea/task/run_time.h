// SPDX-License-Identifier: Apache-2.0
// How long a training will take, told before it begins.
#pragma once

#include <string>

#include "fovea/task/language_model.h"

namespace fovea {

struct RunTime {
  double seconds = 0;  ///< of updates and evaluations; saves are not counted
  std::string basis;   ///< what it rests on, for people
};

/// Updates that are left after `done`, and evaluations, each as the updates that take as long.
double updates_to_come(const LanguageModelRun& run, const RunState& done = {});

/// An estimate of what is left after `done`, within about half a second. Where an update is short
/// and the model is soon made, some are made on a model of the run's shape and timed; others are
/// reckoned from their FLOPs, their parameters, and what the machine's multiply-adds and its memory
/// reach now. A run that ends by hours takes what is left of those.
RunTime estimate_run_time(const Context& context, const LanguageModelRun& run,
                          const RunState& done = {});

}  // namespace fovea
