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

/// An estimate, within about half a second. Where an update is short, some are made on a model of
/// the run's shape and timed; a long one is reckoned from its FLOPs and from what the machine's
/// multiply-adds reach now. A run that ends by hours takes those.
RunTime estimate_run_time(const Context& context, const LanguageModelRun& run);

}  // namespace fovea
