// SPDX-License-Identifier: Apache-2.0
// The output of a training on stdout, and the report about a run before it begins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/task/training_task.h"
#include "fovea/train/run_summary.h"

namespace fovea::cli {

struct MemoryForecast {
  double bytes;       ///< peak memory of the process
  MemoryLimit limit;  ///< the memory that it may use
  bool fits() const { return bytes <= static_cast<double>(limit.bytes); }
};

/// Throws kOutOfMemory: the run needs more memory than it may use, most of it for this option, or
/// "" if model and batch are large.
/// `sizes`: the options of that.
[[noreturn]] void fail_fit(const MemoryForecast& memory, std::string_view largest_option,
                           std::string_view sizes);

/// With --verbose: prints the machine, these lines about the data, and the model.
void describe_run(const Context& context, const std::vector<std::string>& about_data,
                  const RunCost& cost, const MemoryForecast& memory);

struct RunForecast {
  RunCost cost;
  double flops_per_update;
  RunTime time;
  index done;  ///< updates done so far
  MemoryForecast memory;
  std::string_view row = "token";  ///< the unit that an update reads
  bool solved = false;             ///< in one piece, without updates
};
void print_forecast(const RunForecast& forecast, bool json);

/// The "best" or the "last" weights: "best validation loss 0.2500", or, if more was measured, "best
/// weights: validation accuracy 0.9000, macro_f1 0.8990, loss 0.2500".
std::string validation_text(std::string_view which, double loss,
                            const std::vector<MetricValue>& metrics);

/// Adds the metrics as "valid_metrics" and "best_valid_metrics" if there are any.
void add_metrics(Json::Object& object, const RunSummary& run);

struct FinishedRun {
  const TrainResult& result;
  index parameters;
  double seconds;         ///< of this process
  std::string_view unit;  ///< the name of a target: "token"
  bool solved = false;    ///< in one piece, without updates
};
/// `folder`: that of the run.
void print_result(const FinishedRun& finished, const std::string& folder, bool json);

}  // namespace fovea::cli
