// SPDX-License-Identifier: Apache-2.0
#include "cli/train_report.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output.h"
#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/report/progress.h"
#include "fovea/simd/isa.h"

namespace fovea::cli {

namespace {

std::string counted(index n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

struct DryRun {
  index parameters = 0;
  index updates = 0;
  index tokens_per_update = 0;
  double flops_per_update = 0;
  double flops = 0;
  index predicted_memory_bytes = 0;
  index available_memory_bytes = 0;
  bool fits = true;
  double predicted_seconds = 0;
  std::string predicted_seconds_basis;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("parameters", parameters, "numbers that are learned");
    visit("updates", updates, "updates of the whole run; 0: it ends by hours");
    visit("tokens_per_update", tokens_per_update, "targets of an update, at most");
    visit("flops_per_update", flops_per_update, "of products, forward and backward");
    visit("flops", flops, "of the whole run");
    visit("predicted_memory_bytes", predicted_memory_bytes, "of the process, at its peak");
    visit("available_memory_bytes", available_memory_bytes, "that the process may have");
    visit("fits", fits, "is what is predicted available?");
    visit("predicted_seconds", predicted_seconds, "an estimate: updates and evaluations to come");
    visit("predicted_seconds_basis", predicted_seconds_basis, "what it rests on");
  }
};

struct RunSummaryLine {
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  double valid_loss = std::numeric_limits<double>::quiet_NaN();
  double best_valid_loss = std::numeric_limits<double>::quiet_NaN();
  index steps = 0;
  index tokens = 0;
  double tokens_per_second = 0;
  double seconds = 0;
  index parameters = 0;
  index peak_memory_bytes = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("train_loss", train_loss, "nats per target, mean since the previous evaluation");
    visit("valid_loss", valid_loss, "nats per target, the whole set, at the end");
    visit("best_valid_loss", best_valid_loss, "of the best weights, which are kept");
    visit("steps", steps, "updates since the beginning of the run");
    visit("tokens", tokens, "targets trained since the beginning of the run");
    visit("tokens_per_second", tokens_per_second, "of this process, in its updates");
    visit("seconds", seconds, "of this process");
    visit("parameters", parameters, "numbers that are learned");
    visit("peak_memory_bytes", peak_memory_bytes, "resident, of this process");
  }
};

RunSummaryLine summary_of(const TrainResult& result, index parameters, double seconds) {
  const RunState& state = result.state;
  RunSummaryLine summary;
  if (state.tokens > 0) summary.train_loss = state.recent_train_loss();
  if (state.evaluated_step == state.step && state.step > 0) summary.valid_loss = state.valid_loss;
  if (state.best_step >= 0) summary.best_valid_loss = state.best_valid_loss;
  summary.steps = state.step;
  summary.tokens = state.tokens;
  summary.tokens_per_second =
      result.process_step_seconds > 0
          ? static_cast<double>(result.process_tokens) / result.process_step_seconds
          : 0;
  summary.seconds = seconds;
  summary.parameters = parameters;
  summary.peak_memory_bytes = peak_memory_bytes();
  return summary;
}

}  // namespace

void fail_fit(const MemoryForecast& memory, std::string_view largest_option,
              std::string_view sizes) {
  const bool rarely = largest_option == "--observe-every";
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("training would take {}; {} are available ({})", size_text(memory.bytes),
                          size_text(memory.limit.bytes), memory.limit.reason),
              largest_option.empty() ? fmt::format("choose a smaller {}", sizes)
                                     : fmt::format("choose a {} {}, which takes most of it",
                                                   rarely ? "larger" : "smaller", largest_option));
}

void describe_run(const Context& context, const std::vector<std::string>& about_data,
                  const RunCost& cost, const MemoryForecast& memory) {
  detail(fmt::format("{}, instruction set {}", counted(context.threads(), "thread"),
                     isa_name(current_isa())));
  for (const std::string& line : about_data) detail(line);
  detail(fmt::format("model: {} parameters; about {} of {} will be used ({})", cost.parameters,
                     size_text(memory.bytes), size_text(memory.limit.bytes), memory.limit.reason));
}

void print_forecast(const RunForecast& forecast, bool json) {
  const auto& [cost, flops, time, done, memory, row, solved] = forecast;
  const DryRun dry{.parameters = cost.parameters,
                   .updates = cost.updates,
                   .tokens_per_update = cost.tokens_per_update,
                   .flops_per_update = flops,
                   .flops = flops * static_cast<double>(cost.updates),
                   .predicted_memory_bytes = static_cast<index>(memory.bytes),
                   .available_memory_bytes = memory.limit.bytes,
                   .fits = memory.fits(),
                   .predicted_seconds = time.seconds,
                   .predicted_seconds_basis = time.basis};
  if (json) {
    print(to_json_line(dry) + "\n");
    return;
  }
  print(fmt::format("parameters        {}\n", dry.parameters));
  if (!solved) {
    print(fmt::format("updates           {}{}\n",
                      dry.updates > 0 ? std::to_string(dry.updates) : "until the time is up",
                      done > 0 ? fmt::format("; {} are done", done) : ""));
    print(fmt::format("{:<18}{}\n", fmt::format("{}s an update", row), dry.tokens_per_update));
    print(fmt::format("FLOPs an update   {:.4g}\n", dry.flops_per_update));
    if (dry.updates > 0) print(fmt::format("FLOPs             {:.4g}\n", dry.flops));
  }
  print(fmt::format("predicted memory  {} of {} ({})\n", size_text(memory.bytes),
                    size_text(memory.limit.bytes), memory.limit.reason));
  if (!dry.fits) print("                  too much: the run would be refused\n");
  print(fmt::format("estimated time    {} ({})\n", format_duration(time.seconds), time.basis));
}

std::string validation_text(std::string_view which, double loss,
                            const std::vector<MetricValue>& metrics) {
  if (metrics.empty()) return fmt::format("{} validation loss {:.4f}", which, loss);
  std::string text = fmt::format("{} weights: validation", which);
  for (const MetricValue& metric : metrics) {
    text += fmt::format(" {} {:.4f},", metric.name, metric.value);
  }
  return text + fmt::format(" loss {:.4f}", loss);
}

// "5 folds, means with 95 % intervals: accuracy 0.8540 (0.8321 to 0.8759), ..."
std::string folds_text(const std::vector<FoldedMetric>& folds) {
  if (folds.empty()) return "";
  std::string text;
  for (const FoldedMetric& metric : folds) {
    text += fmt::format("{} {} {:.4f} ({:.4f} to {:.4f})", text.empty() ? "" : ",", metric.name,
                        metric.mean, metric.low, metric.high);
  }
  return fmt::format("{}, means with 95 % intervals:{}\n",
                     counted(static_cast<index>(folds.front().folds.size()), "fold"), text);
}

void add_metrics(Json::Object& object, const RunSummary& run) {
  const auto add = [&](std::string name, const std::vector<MetricValue>& metrics) {
    if (metrics.empty()) return;
    Json::Object values;
    for (const MetricValue& metric : metrics) values.emplace_back(metric.name, metric.value);
    object.emplace_back(std::move(name), std::move(values));
  };
  add("valid_metrics", run.valid_metrics);
  add("best_valid_metrics", run.best_valid_metrics);
  if (run.folds.empty()) return;
  Json::Object folds;
  for (const FoldedMetric& metric : run.folds) folds.emplace_back(metric.name, json_of(metric));
  object.emplace_back("cross_validation", std::move(folds));
}

void print_result(const FinishedRun& finished, const RunOptions& run) {
  const RunSummaryLine s = summary_of(finished.result, finished.parameters, finished.seconds);
  const RunSummary stored = run_summary(run.output);
  if (run.json) {
    Json::Object object = json_of(s).object();
    add_metrics(object, stored);
    print(Json(std::move(object)).line() + "\n");
    return;
  }
  if (finished.solved) {
    if (finished.result.stopped) return;  // there is no model
    const std::string found =
        std::isfinite(s.best_valid_loss)
            ? validation_text("chosen", s.best_valid_loss, stored.best_valid_metrics)
            : fmt::format("train loss {:.4f}; too few texts to validate", s.train_loss);
    print(fmt::format("solved for {} in {:.1f} s\n{}\n{}model: {}\n",
                      counted(s.tokens, finished.unit), s.seconds, found, folds_text(stored.folds),
                      run.output));
    return;
  }
  // Updates and tokens are those of the whole run; the time is that of this process.
  print(fmt::format("{}, {}; ", counted(s.steps, "update"), counted(s.tokens, finished.unit)));
  print(s.tokens_per_second > 0 ? fmt::format("{:.1f} s here, {:.0f} {}s/s\n", s.seconds,
                                              s.tokens_per_second, finished.unit)
                                : "nothing was left to do: a longer --stop-after, or more "
                                  "--patience, makes the run longer\n");
  if (std::isfinite(s.best_valid_loss)) {
    print(fmt::format("{}, at update {}; ",
                      validation_text("best", s.best_valid_loss, stored.best_valid_metrics),
                      finished.result.state.best_step));
  }
  if (std::isfinite(s.valid_loss)) {
    print(fmt::format("last validation loss {:.4f}; ", s.valid_loss));
  }
  print(fmt::format("train loss {:.4f}\nmodel: {}\n", s.train_loss, run.output));
}

}  // namespace fovea::cli
