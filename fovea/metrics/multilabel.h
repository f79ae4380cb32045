// SPDX-License-Identifier: Apache-2.0
// How well the labels of examples are predicted where an example may have any number of L labels.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// Number is double, or Interval.
template <class Number>
struct MultilabelReportOf {
  index examples = 0;
  Number subset_accuracy = {};     ///< share of the examples with all labels right
  Number hamming_loss = {};        ///< share of the N L decisions that are wrong
  ScoresOf<Number> macro = {};     ///< mean over labels
  ScoresOf<Number> weighted = {};  ///< mean over labels, weighted by their support
  ScoresOf<Number> micro = {};     ///< of all decisions together
  ScoresOf<Number> samples = {};   ///< mean over examples, of the scores over the labels of each
  std::vector<ScoresOf<Number>> labels = {};  ///< [L]
  std::vector<index> support = {};            ///< [L]: examples that have each label
  std::vector<index> predicted = {};          ///< [L]: examples for which it was predicted

  /// Calls f(NumberName, number) for each number: "subset_accuracy", "hamming_loss",
  /// "macro_precision", "macro_recall", "macro_f1", "weighted_...", "micro_...", "samples_...";
  /// then "precision", "recall", "f1" of each label.
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"subset_accuracy"}, self.subset_accuracy);
    f(NumberName{"hamming_loss"}, self.hamming_loss);
    detail::visit_scores(self.macro, {"macro_precision", "macro_recall", "macro_f1"}, f);
    detail::visit_scores(self.weighted, {"weighted_precision", "weighted_recall", "weighted_f1"},
                         f);
    detail::visit_scores(self.micro, {"micro_precision", "micro_recall", "micro_f1"}, f);
    detail::visit_scores(self.samples, {"samples_precision", "samples_recall", "samples_f1"}, f);
    detail::visit_classes(self.labels, f);
  }
  template <class Other>
  void take_sizes(const MultilabelReportOf<Other>& other) {
    examples = other.examples;
    labels.resize(other.labels.size());
    support = other.support;
    predicted = other.predicted;
  }
};
using MultilabelReport = MultilabelReportOf<double>;
using MultilabelIntervals = MultilabelReportOf<Interval>;

/// truth, predicted [N, L]: 1 where a label applies, else 0. Throws Error(kShape) if the shapes
/// differ or are empty, Error(kOptionValue) for other values.
MultilabelReport multilabel_report(Rows<const std::uint8_t> truth,
                                   Rows<const std::uint8_t> predicted);

/// Bootstrap intervals of all numbers of the report.
MultilabelIntervals multilabel_intervals(const Context& ctx, Rows<const std::uint8_t> truth,
                                         Rows<const std::uint8_t> predicted,
                                         const BootstrapOptions& options = {});

}  // namespace fovea
