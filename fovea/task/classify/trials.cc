// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/trials.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/option.h"
#include "fovea/config/json.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/options.h"
#include "fovea/train/run_state.h"

namespace fovea {

namespace {

std::string line_of(const SearchTrial& trial) {
  Json::Object object = json_of(trial).object();
  Json::Object metrics;
  for (const MetricValue& one : trial.metrics) metrics.emplace_back(one.name, one.value);
  object.emplace_back("metrics", std::move(metrics));
  return Json(std::move(object)).line();
}

SearchTrial trial_of(std::string_view line, const std::string& where) {
  Json::Object object = parse_json(line, {where}).object();
  SearchTrial trial;
  std::erase_if(object, [&](const auto& member) {
    if (member.first != "metrics") return false;
    for (const auto& [name, value] : member.second.object()) {
      trial.metrics.push_back({name, value.number()});
    }
    return true;
  });
  set_from_json(fields_of(trial), Json(std::move(object)), {where});
  return trial;
}

// Whether a is better: on a higher rung or, on the same, of a lower loss. A trial that failed is
// the worst.
bool is_better(const SearchTrial& a, const SearchTrial& b) {
  if (std::isnan(a.loss) || std::isnan(b.loss)) return std::isnan(b.loss) && !std::isnan(a.loss);
  return a.rung != b.rung ? a.rung > b.rung : a.loss < b.loss;
}

}  // namespace

SearchBudget parse_budget(std::string_view text) {
  SearchBudget budget;
  if (text.ends_with('t')) {
    const char* const end = text.data() + text.size() - 1;
    const auto [rest, error] = std::from_chars(text.data(), end, budget.trials);
    if (error == std::errc{} && rest == end && budget.trials > 0) return budget;
  } else if (text.ends_with('s') || text.ends_with('m') || text.ends_with('h')) {
    budget.seconds = parse_length(text, "--auto").value * 3600;
    return budget;
  }
  fail_option("auto", text, "a time (90s, 10m, 2h) or a number of trials (40t)");
}

SearchRecords read_trials(const std::filesystem::path& folder) {
  SearchRecords records;
  const std::filesystem::path file = folder / kTrialsName;
  const std::string text = read_run_file(file);
  std::string_view rest = text;
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;  // it was being written
    try {
      if (is_first) {
        from_json(rest.substr(0, end), {file.string()}, records.head);
      } else {
        records.trials.push_back(trial_of(rest.substr(0, end), file.string()));
      }
    } catch (const Error&) {
      break;
    }
    rest.remove_prefix(end + 1);
  }
  return records;
}

void write_trials(const std::filesystem::path& folder, const SearchRecords& records) {
  std::string text = to_json_line(records.head) + "\n";
  for (const SearchTrial& trial : records.trials) text += line_of(trial) + "\n";
  write_file_atomically(folder / kTrialsName, text);
}

void append_trial(const std::filesystem::path& folder, const SearchTrial& trial) {
  append_line(folder / kTrialsName, line_of(trial));
}

std::size_t best_trial(std::span<const SearchTrial> trials) {
  const auto best = std::min_element(trials.begin(), trials.end(), is_better);
  if (best == trials.end() || std::isnan(best->loss)) return trials.size();
  return static_cast<std::size_t>(best - trials.begin());
}

std::string trial_table(std::span<const SearchTrial> trials, std::size_t most) {
  std::vector<std::size_t> order(trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return is_better(trials[a], trials[b]); });
  std::string text = "trial   texts    loss  ";
  const std::size_t named = order.empty() ? 0 : trials[order[0]].metrics.size();
  for (std::size_t m = 0; m < named; ++m) {
    text += fmt::format("{:>9}  ", trials[order[0]].metrics[m].name);
  }
  text += "seconds  options\n";
  for (std::size_t n = 0; n < std::min(most, order.size()); ++n) {
    const SearchTrial& trial = trials[order[n]];
    text += fmt::format("{:>5}  {:>6}  {:>6.4f}  ", trial.trial, trial.rows, trial.loss);
    for (std::size_t m = 0; m < named; ++m) {
      text += m < trial.metrics.size() ? fmt::format("{:>9.4f}  ", trial.metrics[m].value)
                                       : fmt::format("{:>9}  ", "");
    }
    text += fmt::format("{:>7.1f}  {}{}{}\n", trial.seconds, trial.options,
                        trial.found.empty() ? "" : " ", trial.found);
  }
  return text;
}

}  // namespace fovea
