// SPDX-License-Identifier: Apache-2.0
// Estimates how long a training will take.
#pragma once

#include "fovea/task/language_model.h"

namespace fovea {

/// The updates that are left after `done`, plus the evaluations, each counted as the number of
/// updates that take as long.
double updates_to_come(const LanguageModelRun& run, const RunState& done = {});

/// An estimate of the time that is left after `done`; it takes about half a second. If updates are
/// short and the model is made quickly, some updates of a model of the same shape are timed.
/// Otherwise the time is computed from FLOPs and parameters, with the measured speed of the
/// machine's multiply-adds and memory. A run that ends by hours takes the rest of those.
RunTime estimate_run_time(const Context& context, const LanguageModelRun& run,
                          const RunState& done = {});

}  // namespace fovea
