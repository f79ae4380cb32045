// SPDX-License-Identifier: Apache-2.0
#include "cli/score_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "fovea/report/terminal.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

std::string padding(std::string_view text, index columns) {
  return std::string(static_cast<std::size_t>(std::max<index>(columns - display_width(text), 0)),
                     ' ');
}

// A row for each true class, a column for each predicted one.
std::string matrix_rows(const ConfusionMatrix& matrix, const std::vector<std::string>& names,
                        index cell) {
  const index widest = widest_of(names);
  std::string rows(static_cast<std::size_t>(widest), ' ');
  for (const std::string& name : names) rows += "  " + right(name, cell);
  rows += '\n';
  for (index t = 0; t < matrix.classes; ++t) {
    rows += left(names[static_cast<std::size_t>(t)], widest);
    for (index p = 0; p < matrix.classes; ++p) {
      rows += "  " + right(std::to_string(matrix.at(t, p)), cell);
    }
    rows += '\n';
  }
  return rows;
}

// The twenty pairs of classes that are confused most often, a line each.
std::string confused_pairs(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  struct Pair {
    index truth, predicted, count;
  };
  std::vector<Pair> pairs;
  for (index t = 0; t < matrix.classes; ++t) {
    for (index p = 0; p < matrix.classes; ++p) {
      if (t != p && matrix.at(t, p) > 0) pairs.push_back({t, p, matrix.at(t, p)});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.count > b.count; });
  constexpr std::size_t kMost = 20;
  pairs.resize(std::min(kMost, pairs.size()));
  std::string lines;
  for (const auto& [truth, predicted, count] : pairs) {
    lines += fmt::format("{:>8}  {} taken for {}\n", count, names[static_cast<std::size_t>(truth)],
                         names[static_cast<std::size_t>(predicted)]);
  }
  return lines;
}

}  // namespace

std::string left(std::string_view text, index columns) {
  return std::string(text) + padding(text, columns);
}

std::string right(std::string_view text, index columns) {
  return padding(text, columns) + std::string(text);
}

std::string four_digits(double number) {
  return std::isnan(number) ? "undefined" : fmt::format("{:.4f}", number);
}

std::string shown_name(std::string_view name) {
  constexpr index kWidest = 24;
  return fit_columns(escape_text(name), kWidest);
}

std::vector<std::string> shown_names(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(shown_name(name));
  return shown;
}

index widest_of(const std::vector<std::string>& names) {
  index widest = 0;
  for (const std::string& name : names) widest = std::max(widest, display_width(name));
  return widest;
}

std::string numbers_head(double confidence) {
  return fmt::format("{:<18} {:>10}   {:.0f} % interval\n", "", "", 100 * confidence);
}

std::string number_line(std::string_view name, const Interval& interval) {
  std::string spoken(name);
  std::replace(spoken.begin(), spoken.end(), '_', ' ');
  return fmt::format("{:<18} {:>10}   {} to {}\n", spoken, four_digits(interval.value),
                     four_digits(interval.low), four_digits(interval.high));
}

std::string confusion_text(const ConfusionMatrix& matrix, const std::vector<std::string>& names,
                           const ConfusionTitles& titles) {
  constexpr index kColumns = 100;  // a wider matrix is a list
  const index widest = widest_of(names);
  index cell = widest;
  for (const index count : matrix.counts) {
    cell = std::max(cell, static_cast<index>(std::to_string(count).size()));
  }
  return widest + matrix.classes * (cell + 2) <= kColumns
             ? fmt::format("\n{}\n{}", titles.matrix, matrix_rows(matrix, names, cell))
             : fmt::format("\n{}\n{}", titles.pairs, confused_pairs(matrix, names));
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

}  // namespace fovea::cli
