// SPDX-License-Identifier: Apache-2.0
// What train lm prints on stdout, and what it tells about a run before it begins.
#pragma once

#include <filesystem>
#include <string_view>

#include "cli/train_options.h"
#include "fovea/base/machine.h"
#include "fovea/task/language_model.h"
#include "fovea/task/run_time.h"

namespace fovea::cli {

struct MemoryForecast {
  double bytes;       ///< of the process, at its peak
  MemoryLimit limit;  ///< what it may have
  bool fits() const { return bytes <= static_cast<double>(limit.bytes); }
};

/// Throws kOutOfMemory if the run takes more than there is.
void require_fit(const MemoryForecast& memory);

/// With --verbose: what is used and found.
void describe_run(const Context& context, const LanguageModelRun& run, const RunCost& cost,
                  const MemoryForecast& memory);

struct RunForecast {
  RunCost cost;
  RunTime time;
  index done;  ///< updates that the run has behind it
  MemoryForecast memory;
};
void print_forecast(const RunForecast& forecast, bool json);

/// What stands behind a training loss wherever a validation loss stands beside it: that one is of
/// the weights as they are.
inline constexpr std::string_view kWhatTrainLossIs =
    "a mean over the updates before, while the weights changed";

/// `seconds` of this process.
void print_result(const TrainResult& result, index parameters, double seconds,
                  const RunOptions& run);

}  // namespace fovea::cli
