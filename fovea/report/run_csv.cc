// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/run_csv.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace fovea {

namespace {

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted;
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return fmt::format("\"{}\"", quoted);
}

// The columns of all runs, in the order in which they first occur, and the points of each.
class Columns {
 public:
  // Adds a column of run number `r`.
  void add(std::size_t r, const std::string& name, const std::vector<PlotPoint>& points) {
    auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) at = names_.insert(at, name);
    const auto column = static_cast<std::size_t>(at - names_.begin());
    for (const PlotPoint& p : points) cells_[{r, p.x}][column] = p.y;
  }

  std::string text(std::span<const RunReport> runs) const {
    std::string text = "run,update";
    for (const std::string& name : names_) text += fmt::format(",{}", csv_cell(name));
    text += '\n';
    for (const auto& [place, cells] : cells_) {
      text += fmt::format("{},{:.0f}", csv_cell(runs[place.first].name), place.second);
      for (std::size_t column = 0; column < names_.size(); ++column) {
        const auto cell = cells.find(column);
        text += ',';
        if (cell != cells.end()) text += fmt::format("{}", cell->second);
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<std::string> names_;
  std::map<std::pair<std::size_t, double>, std::map<std::size_t, double>> cells_;
};

}  // namespace

std::string run_csv(std::span<const RunReport> runs) {
  Columns columns;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const RunReport& run = runs[r];
    const auto add_metrics = [&](std::string_view of, const std::vector<NamedCurve>& curves) {
      for (const NamedCurve& one : curves) {
        columns.add(r, fmt::format("{}_{}", of, one.name), one.points);
      }
    };
    columns.add(r, "training_loss_batch", run.losses.last_batch);
    columns.add(r, "training_loss_last16_mean", run.losses.last16_mean);
    columns.add(r, "training_loss_running_mean", run.losses.running_mean);
    columns.add(r, "training_loss_interval_mean", run.losses.interval_mean);
    columns.add(r, "training_loss", run.losses.training);
    columns.add(r, "validation_loss", run.losses.validation);
    columns.add(r, "lr", run.lr);
    columns.add(r, "gradient_norm", run.gradient_norm);
    columns.add(r, "targets_per_second", run.speed);
    add_metrics("training_running_mean", run.running_metrics);
    add_metrics("training_interval_mean", run.interval_metrics);
    add_metrics("training", run.training_metrics);
    add_metrics("validation", run.metrics);
  }
  return columns.text(runs);
}

}  // namespace fovea
