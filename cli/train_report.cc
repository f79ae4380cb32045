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

struct Totals {
  double train_loss, valid_loss, best_valid_loss, tokens_per_second;
};

// NaN: there is none.
Totals totals_of(const TrainResult& result) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const RunState& state = result.state;
  const bool is_evaluated = state.evaluated_step == state.step && state.step > 0;
  return {.train_loss = state.tokens > 0 ? state.recent_train_loss() : kNone,
          .valid_loss = is_evaluated ? state.valid_loss : kNone,
          .best_valid_loss = state.best_step >= 0 ? state.best_valid_loss : kNone,
          .tokens_per_second =
              result.process_step_seconds > 0
                  ? static_cast<double>(result.process_tokens) / result.process_step_seconds
                  : 0};
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
  const double all_flops = flops * static_cast<double>(cost.updates);
  if (json) {
    print_json({{"parameters", cost.parameters},
                {"updates", cost.updates},  // 0: it ends by hours
                {"tokens_per_update", cost.tokens_per_update},
                {"flops_per_update", flops},
                {"flops", all_flops},
                {"predicted_memory_bytes", static_cast<index>(memory.bytes)},
                {"available_memory_bytes", memory.limit.bytes},
                {"fits", memory.fits()},
                {"predicted_seconds", time.seconds},
                {"predicted_seconds_basis", time.basis}});
    return;
  }
  print(fmt::format("parameters        {}\n", cost.parameters));
  if (!solved) {
    print(fmt::format("updates           {}{}\n",
                      cost.updates > 0 ? std::to_string(cost.updates) : "until the time is up",
                      done > 0 ? fmt::format("; {} are done", done) : ""));
    print(fmt::format("{:<18}{}\n", fmt::format("{}s an update", row), cost.tokens_per_update));
    print(fmt::format("FLOPs an update   {:.4g}\n", flops));
    if (cost.updates > 0) print(fmt::format("FLOPs             {:.4g}\n", all_flops));
  }
  print(fmt::format("predicted memory  {} of {} ({})\n", size_text(memory.bytes),
                    size_text(memory.limit.bytes), memory.limit.reason));
  if (!memory.fits()) print("                  too much: the run would be refused\n");
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

void print_result(const FinishedRun& finished, const std::string& folder, bool json) {
  const Totals s = totals_of(finished.result);
  const RunState& state = finished.result.state;
  const RunSummary stored = run_summary(folder);
  if (json) {
    Json::Object object{{"train_loss", s.train_loss},
                        {"valid_loss", s.valid_loss},
                        {"best_valid_loss", s.best_valid_loss},
                        {"steps", state.step},
                        {"tokens", state.tokens},
                        {"tokens_per_second", s.tokens_per_second},
                        {"seconds", finished.seconds},
                        {"parameters", finished.parameters},
                        {"peak_memory_bytes", peak_memory_bytes()}};
    add_metrics(object, stored);
    print_json(std::move(object));
    return;
  }
  if (finished.solved) {
    if (finished.result.stopped) return;  // there is no model
    const std::string found =
        std::isfinite(s.best_valid_loss)
            ? validation_text("chosen", s.best_valid_loss, stored.best_valid_metrics)
            : fmt::format("train loss {:.4f}; too few texts to validate", s.train_loss);
    print(fmt::format("solved for {} in {:.1f} s\n{}\n{}model: {}\n",
                      counted(state.tokens, finished.unit), finished.seconds, found,
                      folds_text(stored.folds), folder));
    return;
  }
  // Updates and tokens are those of the whole run; the time is that of this process.
  print(
      fmt::format("{}, {}; ", counted(state.step, "update"), counted(state.tokens, finished.unit)));
  print(s.tokens_per_second > 0 ? fmt::format("{:.1f} s here, {:.0f} {}s/s\n", finished.seconds,
                                              s.tokens_per_second, finished.unit)
                                : "nothing was left to do: a longer --stop-after, or more "
                                  "--patience, makes the run longer\n");
  if (std::isfinite(s.best_valid_loss)) {
    print(fmt::format("{}, at update {}; ",
                      validation_text("best", s.best_valid_loss, stored.best_valid_metrics),
                      state.best_step));
  }
  if (std::isfinite(s.valid_loss)) {
    print(fmt::format("last validation loss {:.4f}; ", s.valid_loss));
  }
  print(fmt::format("train loss {:.4f}\nmodel: {}\n", s.train_loss, folder));
}

}  // namespace fovea::cli
