// SPDX-License-Identifier: Apache-2.0
#include "cli/search_report.h"

#include <fmt/core.h>

#include <limits>

#include "fovea/report/progress.h"

namespace fovea::cli {

namespace {

constexpr std::size_t kMostShown = 10;

// The losses on the highest rung, as far as they were the best so far: "0.3901 (trial 1)".
std::string best_so_far(std::span<const SearchTrial> trials, index rung) {
  std::string text;
  double best = std::numeric_limits<double>::infinity();
  for (const SearchTrial& trial : trials) {
    if (trial.rung != rung || !(trial.loss < best)) continue;
    best = trial.loss;
    text += fmt::format("{}{:.4f} (trial {})", text.empty() ? "" : ", ", best, trial.trial);
  }
  return text;
}

}  // namespace

std::string search_report(std::span<const SearchTrial> trials, std::size_t best) {
  if (best >= trials.size()) {
    return "the search found nothing better in its time: the defaults are trained\n";
  }
  const SearchTrial& chosen = trials[best];
  double seconds = 0;
  index on_all = 0;
  for (const SearchTrial& trial : trials) {
    seconds += trial.seconds;
    on_all += trial.rung == chosen.rung ? 1 : 0;
  }
  std::string text = trial_table(trials, kMostShown);
  if (trials.size() > kMostShown) {
    text += fmt::format("{} more trials: {}\n", trials.size() - kMostShown, kTrialsName);
  }
  text += fmt::format("best loss so far, on {} texts: {}\n", chosen.rows,
                      best_so_far(trials, chosen.rung));
  text += fmt::format(
      "chosen: trial {}, of the lowest loss of {} on {} texts ({} trials in {}): {}", chosen.trial,
      on_all, chosen.rows, trials.size(), format_duration(seconds), chosen.options);
  if (!chosen.found.empty()) text += " " + chosen.found;
  return text + "\n";
}

}  // namespace fovea::cli
