// SPDX-License-Identifier: Apache-2.0
// What train lm prints on stdout, and what it reports about a run before it begins.
#pragma once

#include <filesystem>
#include <string_view>

#include "cli/train_options.h"
#include "fovea/base/machine.h"
#include "fovea/task/language_model.h"
#include "fovea/task/run_time.h"

namespace fovea::cli {

struct MemoryForecast {
  double bytes;       ///< peak memory of the process
  MemoryLimit limit;  ///< the memory that it may use
  bool fits() const { return bytes <= static_cast<double>(limit.bytes); }
};

/// Throws kOutOfMemory if the run needs more memory than it may use.
void require_fit(const MemoryForecast& memory);

/// With --verbose: prints the machine, the data and the model.
void describe_run(const Context& context, const LanguageModelRun& run, const RunCost& cost,
                  const MemoryForecast& memory);

struct RunForecast {
  RunCost cost;
  RunTime time;
  index done;  ///< updates done so far
  MemoryForecast memory;
};
void print_forecast(const RunForecast& forecast, bool json);

/// Printed after a training loss that stands beside a validation loss: the validation loss is that
/// of the current weights.
inline constexpr std::string_view kWhatTrainLossIs =
    "a mean over the updates before, while the weights changed";

/// `seconds`: the run time of this process.
void print_result(const TrainResult& result, index parameters, double seconds,
                  const RunOptions& run);

}  // namespace fovea::cli
