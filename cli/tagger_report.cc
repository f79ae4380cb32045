// SPDX-License-Identifier: Apache-2.0
#include "cli/tagger_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/aligned.h"
#include "cli/confused_pairs.h"
#include "fovea/report/terminal.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

constexpr index kWidestType = 24;         // columns
constexpr index kTagMatrixColumns = 100;  // a wider matrix is a list
constexpr index kSentenceColumns = 2000;  // of a mistake

std::string shown_type(std::string_view type) {
  return fit_columns(escape_text(type), kWidestType);
}

index widest_of(const TaggerScore& score) {
  index widest = 4;
  for (const std::string& type : score.types) {
    widest = std::max(widest, display_width(shown_type(type)));
  }
  return widest;
}

void add_numbers(std::string& report, const TaggerScore& score) {
  report += fmt::format("{:<18} {:>10}   {:.0f} % interval\n", "", "", 100 * score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    if (name.starts_with("weighted_")) return;  // left to --json
    std::string spoken(name);
    std::replace(spoken.begin(), spoken.end(), '_', ' ');
    report += fmt::format("{:<18} {:>10}   {} to {}\n", spoken, four_digits(interval.value),
                          four_digits(interval.low), four_digits(interval.high));
  });
}

void add_types(std::string& report, const TaggerScore& score) {
  const index widest = widest_of(score);
  report += fmt::format("\n{}  {:>8}  {:>9}  {:>8}  {:>9}  {:>6}  {:>6}   {:.0f} % of F1\n",
                        left("type", widest), "spans", "predicted", "right", "precision", "recall",
                        "F1", 100 * score.confidence);
  for (std::size_t k = 0; k < score.types.size(); ++k) {
    const ScoresOf<Interval>& scores = score.spans.types[k];
    report += fmt::format("{}  {:>8}  {:>9}  {:>8}  {:>9.4f}  {:>6.4f}  {:>6.4f}   {} to {}\n",
                          left(shown_type(score.types[k]), widest), score.spans.support[k],
                          score.spans.predicted[k], score.spans.right[k], scores.precision.value,
                          scores.recall.value, scores.f1.value, four_digits(scores.f1.low),
                          four_digits(scores.f1.high));
  }
}

void add_confusion(std::string& report, const TaggerScore& score) {
  const ConfusionMatrix& matrix = *score.confusion;
  index cell = widest_of(score);
  for (const index count : matrix.counts) {
    cell = std::max(cell, static_cast<index>(std::to_string(count).size()));
  }
  const index widest = widest_of(score);
  std::vector<std::string> names;
  for (const std::string& type : score.types) names.push_back(shown_type(type));
  names.emplace_back("none");
  if (widest + matrix.classes * (cell + 2) > kTagMatrixColumns) {
    report += "\nspans most often confused (the whole matrix: --json)\n";
    report +=
        confused_pairs(matrix, [&](index type) { return names[static_cast<std::size_t>(type)]; });
    return;
  }
  report += "\nspans by their type (a row for each true one, a column for each predicted one)\n";
  report += std::string(static_cast<std::size_t>(widest), ' ');
  for (const std::string& name : names) report += "  " + right(name, cell);
  report += '\n';
  for (index t = 0; t < matrix.classes; ++t) {
    report += left(names[static_cast<std::size_t>(t)], widest);
    for (index p = 0; p < matrix.classes; ++p) {
      report += "  " + right(std::to_string(matrix.at(t, p)), cell);
    }
    report += '\n';
  }
}

// The words with their tags, true before predicted, where they differ.
std::string in_context(const TaggedMistake& m) {
  std::string text;
  for (std::size_t w = 0; w < m.words.size(); ++w) {
    if (w > 0) text += ' ';
    text += escape_text(m.words[w]);
    if (m.truth[w] == m.predicted[w]) continue;
    text += fmt::format(" [{}, not {}]", escape_text(m.truth[w]), escape_text(m.predicted[w]));
  }
  return fit_columns(text, kSentenceColumns);
}

void add_mistakes(std::string& report, const TaggerScore& score) {
  if (score.mistakes.empty()) return;
  report += score.task == TagTask::kSegment
                ? "\nworst mistakes (what is true, then what was found)\n"
                : "\nworst mistakes (beside a word: its tag, and the wrong one)\n";
  for (const TaggedMistake& m : score.mistakes) {
    report += fmt::format("{}:{}  wrong tags: {} of {}\n", escape_text(m.file), m.line, m.wrong,
                          m.words.size());
    if (score.task == TagTask::kSegment) {
      for (const std::vector<std::string>* tags : {&m.truth, &m.predicted}) {
        report += fmt::format("    {}\n", fit_columns(in_words(m.words, *tags), kSentenceColumns));
      }
    } else {
      report += fmt::format("    {}\n", in_context(m));
    }
  }
}

std::string report_of_column(const TaggerScore& score) {
  std::string report = fmt::format(
      "{} sentence{}, {} {}{}\n", score.sentences, score.sentences == 1 ? "" : "s", score.words,
      score.task == TagTask::kSegment ? "character" : "word", score.words == 1 ? "" : "s");
  add_numbers(report, score);
  if (score.has_spans) add_types(report, score);
  if (score.confusion) add_confusion(report, score);
  add_mistakes(report, score);
  return report;
}

}  // namespace

std::string report_of(std::span<const TaggerScore> columns) {
  if (columns.size() == 1) return report_of_column(columns[0]);
  std::string report;
  for (const TaggerScore& score : columns) {
    report += fmt::format("column {}: {}\n", score.column, report_of_column(score));
  }
  return report + fmt::format("mean of the columns (micro F1 of spans, or accuracy): {}\n",
                              four_digits(mean_score(columns)));
}

}  // namespace fovea::cli
