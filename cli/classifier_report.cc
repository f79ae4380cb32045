// SPDX-License-Identifier: Apache-2.0
#include "cli/classifier_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "cli/aligned.h"
#include "fovea/data/frames.h"
#include "fovea/report/terminal.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

constexpr index kWidestLabel = 24;          // columns
constexpr index kClassMatrixColumns = 100;  // a wider matrix is a list
constexpr index kMistakeColumns = 400;      // of a mistake

std::string shown_label(std::string_view label) {
  return fit_columns(escape_text(label), kWidestLabel);
}

index widest_of(const ClassifierScore& score) {
  index widest = 0;
  for (const std::string& label : score.labels) {
    widest = std::max(widest, display_width(shown_label(label)));
  }
  return widest;
}

// Precision and recall of averages are left to --json.
bool is_shown(std::string_view name) {
  const bool is_average = name.starts_with("macro_") || name.starts_with("micro_") ||
                          name.starts_with("weighted_") || name.starts_with("samples_");
  return !is_average || name.ends_with("_f1");
}

std::string spoken(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void add_numbers(std::string& report, const ClassifierScore& score) {
  report += fmt::format("{:<18} {:>10}   {:.0f} % interval\n", "", "", 100 * score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    if (!is_shown(name)) return;
    report += fmt::format("{:<18} {:>10}   {} to {}\n", spoken(name), four_digits(interval.value),
                          four_digits(interval.low), four_digits(interval.high));
  });
}

// The thresholds of a linear model; of two classes the second has one.
void add_thresholds(std::string& report, const ClassifierScore& score) {
  constexpr std::size_t kMost = 12;
  if (score.thresholds.empty()) return;
  report += fmt::format("\nthresholds of the model ({}): ", score.threshold_rule);
  const std::size_t first = score.classes ? 1 : 0;
  for (std::size_t k = first; k < std::min(first + kMost, score.labels.size()); ++k) {
    report += fmt::format("{}{} {:.4f}", k == first ? "" : ", ", shown_label(score.labels[k]),
                          score.thresholds[k]);
  }
  report += score.labels.size() > first + kMost ? ", ... (all: --json)\n" : "\n";
}

void add_labels(std::string& report, const ClassifierScore& score) {
  const std::string_view name = score.classes ? "class" : "label";
  const index widest = std::max(widest_of(score), display_width(name));
  report += fmt::format("\n{}  {:>8}  {:>9}  {:>9}  {:>6}  {:>6}   {:.0f} % of F1\n",
                        left(name, widest), std::string(words_of(score.input).entry) + "s",
                        "predicted", "precision", "recall", "F1", 100 * score.confidence);
  for (std::size_t k = 0; k < score.labels.size(); ++k) {
    const ScoresOf<Interval>& scores = score.by_label()[k];
    report += fmt::format("{}  {:>8}  {:>9}  {:>9.4f}  {:>6.4f}  {:>6.4f}   {} to {}\n",
                          left(shown_label(score.labels[k]), widest), score.support()[k],
                          score.predicted()[k], scores.precision.value, scores.recall.value,
                          scores.f1.value, four_digits(scores.f1.low), four_digits(scores.f1.high));
  }
}

void add_matrix(std::string& report, const ClassifierScore& score, index cell) {
  const ConfusionMatrix& matrix = *score.confusion;
  const index widest = widest_of(score);
  report += "\nconfusion (a row for each true class, a column for each predicted one)\n";
  report += std::string(static_cast<std::size_t>(widest), ' ');
  for (const std::string& label : score.labels) report += "  " + right(shown_label(label), cell);
  report += '\n';
  for (index t = 0; t < matrix.classes; ++t) {
    report += left(shown_label(score.labels[static_cast<std::size_t>(t)]), widest);
    for (index p = 0; p < matrix.classes; ++p) {
      report += "  " + right(std::to_string(matrix.at(t, p)), cell);
    }
    report += '\n';
  }
}

// Adds the pairs of labels that are confused most often.
void add_pairs(std::string& report, const ClassifierScore& score) {
  report += "\nmost often confused (the whole matrix: --json, --plots)\n";
  report += confused_pairs(*score.confusion, [&](index k) {
    return shown_label(score.labels[static_cast<std::size_t>(k)]);
  });
}

void add_confusion(std::string& report, const ClassifierScore& score) {
  index cell = widest_of(score);
  for (const index count : score.confusion->counts) {
    cell = std::max(cell, static_cast<index>(std::to_string(count).size()));
  }
  const index columns = widest_of(score) + score.confusion->classes * (cell + 2);
  columns <= kClassMatrixColumns ? add_matrix(report, score, cell) : add_pairs(report, score);
}

void add_reliability(std::string& report, const ClassifierScore& score) {
  const bool classes = score.classes.has_value();
  report += fmt::format("\n{:<16} {:>8}  {:>8}  {:>8}\n", classes ? "confidence" : "probability",
                        "count", "mean", classes ? "right" : "have it");
  for (const ReliabilityBin& bin : score.reliability->bins) {
    if (bin.count == 0) continue;
    report += fmt::format("{:.4f} to {:.4f} {:>8}  {:>8.4f}  {:>8.4f}\n", bin.low, bin.high,
                          bin.count, bin.confidence, bin.accuracy);
  }
}

std::string joined(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ", ") + escape_text(label);
  return text.empty() ? "none" : text;
}

std::string place_of(const ClassifierScore& score, const Mistake& m) {
  const std::string file = escape_text(m.file);
  return score.input == InputKind::kNpz ? place_of_sample(file, m.line)
                                        : fmt::format("{}:{}", file, m.line);
}

void add_mistakes(std::string& report, const ClassifierScore& score) {
  if (score.mistakes.empty()) return;
  report += "\nworst mistakes\n";
  const auto probability = [](double p) {
    return std::isnan(p) ? std::string() : fmt::format(" ({:.4f})", p);
  };
  for (const Mistake& m : score.mistakes) {
    report += fmt::format("{}  true {}{}, predicted {}{}, loss {:.4f}\n    {}\n",
                          place_of(score, m), joined(m.truth), probability(m.truth_probability),
                          joined(m.predicted), probability(m.probability), m.loss,
                          fit_columns(escape_text(m.text), kMistakeColumns));
  }
}

}  // namespace

std::string report_of(const ClassifierScore& score) {
  std::string report = fmt::format("{} {}s", score.examples, words_of(score.input).entry);
  if (!score.labels.empty()) {
    report += fmt::format(", {} {}", score.labels.size(), score.classes ? "classes" : "labels");
  }
  report += '\n';
  add_numbers(report, score);
  if (!score.numbers) add_labels(report, score);
  add_thresholds(report, score);
  if (score.confusion) add_confusion(report, score);
  if (score.reliability) add_reliability(report, score);
  add_mistakes(report, score);
  return report;
}

}  // namespace fovea::cli
