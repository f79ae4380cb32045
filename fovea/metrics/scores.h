// SPDX-License-Identifier: Apache-2.0
// Precision, recall and F1, and what they are computed of. A division by zero gives 0, as in
// scikit-learn with zero_division=0.
#pragma once

#include <string_view>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

/// A number of a report: its name, and of which class or label it is; -1: of all.
struct NumberName {
  std::string_view name;
  index label = -1;
};

/// Number is double, or Interval.
template <class Number>
struct ScoresOf {
  Number precision = {}, recall = {}, f1 = {};
};
using Scores = ScoresOf<double>;

namespace detail {

/// Counts of a class: examples that have it and were given it; that have it; that were given it.
struct Hits {
  index both = 0, truth = 0, predicted = 0;
};

/// precision = both / predicted, recall = both / truth, f1 = 2 both / (truth + predicted).
Scores scores_of(const Hits& hits);

/// part / whole; NaN if there is no whole.
double share(index part, index whole);

Hits sum_of(const std::vector<Hits>& classes);

/// sum_k weights[k] classes[k] / sum_k weights[k]; zeros if the weights add up to 0.
Scores mean_of(const std::vector<Scores>& classes, const std::vector<double>& weights);

/// Sets the scores `each` of the classes of a report, their support, how often they were predicted,
/// and the three averages. Returns the sum of the hits. Unless `absent_count`, the macro average
/// leaves out classes that do not occur and were never predicted.
template <class Report>
Hits set_scores(Report& report, std::vector<Scores>& each, const std::vector<Hits>& classes,
                bool absent_count) {
  std::vector<double> counts, support;
  for (const Hits& hits : classes) {
    each.push_back(scores_of(hits));
    report.support.push_back(hits.truth);
    report.predicted.push_back(hits.predicted);
    counts.push_back(absent_count || hits.truth + hits.predicted > 0 ? 1 : 0);
    support.push_back(static_cast<double>(hits.truth));
  }
  const Hits all = sum_of(classes);
  report.micro = scores_of(all);
  report.macro = mean_of(each, counts);
  report.weighted = mean_of(each, support);
  return all;
}

/// Calls f(NumberName, number) for the three numbers.
template <class Self, class F>
void visit_scores(Self& scores, const ScoresOf<std::string_view>& names, F&& f, index label = -1) {
  f(NumberName{names.precision, label}, scores.precision);
  f(NumberName{names.recall, label}, scores.recall);
  f(NumberName{names.f1, label}, scores.f1);
}

/// Visits the macro and the weighted average, then the micro average.
template <class Self, class F>
void visit_averages(Self& report, F&& f) {
  visit_scores(report.macro, {"macro_precision", "macro_recall", "macro_f1"}, f);
  visit_scores(report.weighted, {"weighted_precision", "weighted_recall", "weighted_f1"}, f);
  visit_scores(report.micro, {"micro_precision", "micro_recall", "micro_f1"}, f);
}

/// Visits the three numbers of each class.
template <class Classes, class F>
void visit_classes(Classes& classes, F&& f) {
  index label = 0;
  for (auto& scores : classes) visit_scores(scores, {"precision", "recall", "f1"}, f, label++);
}

}  // namespace detail
}  // namespace fovea
