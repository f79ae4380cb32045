// SPDX-License-Identifier: Apache-2.0
// How well classes are predicted: one of K for each example, or any number of labels.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// counts[t K + p]: how many examples of class t were predicted to be of class p.
struct ConfusionMatrix {
  index classes = 0;          ///< K
  std::vector<index> counts;  ///< [K, K]

  index at(index truth, index predicted) const {
    return counts[static_cast<std::size_t>(truth * classes + predicted)];
  }
};

/// truth, predicted [N]: labels in [0, classes). Throws Error(kShape) if the lengths differ, there
/// are no examples, or a label is outside of the range.
ConfusionMatrix confusion_matrix(Vec<const std::int32_t> truth, Vec<const std::int32_t> predicted,
                                 index classes);

/// The effect on the macro average of a class that has no example and is never predicted. (Its
/// precision, recall and F1 are 0, and it changes no other average.)
enum class AbsentClasses {
  kLeftOut,  ///< the mean is over the classes that occur: scikit-learn's default
  kAsZero,   ///< the mean is over all K: scikit-learn with labels=range(K)
};

/// Number is double, or Interval.
template <class Number>
struct ClassificationReportOf {
  index examples = 0;
  Number accuracy = {};
  ScoresOf<Number> macro = {};     ///< mean over classes
  ScoresOf<Number> weighted = {};  ///< mean over classes, weighted by their support
  ScoresOf<Number> micro = {};     ///< of all decisions together: all three equal the accuracy
  std::vector<ScoresOf<Number>> classes = {};  ///< [K]
  std::vector<index> support = {};             ///< [K]: examples of each class
  std::vector<index> predicted = {};           ///< [K]: how often each was predicted

  /// Calls f(NumberName, number) for each number: "accuracy", "macro_precision", "macro_recall",
  /// "macro_f1", "weighted_...", "micro_..."; then "precision", "recall", "f1" of each class.
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"accuracy"}, self.accuracy);
    detail::visit_averages(self, f);
    detail::visit_classes(self.classes, f);
  }
  template <class Other>
  void take_sizes(const ClassificationReportOf<Other>& other) {
    examples = other.examples;
    classes.resize(other.classes.size());
    support = other.support;
    predicted = other.predicted;
  }
};
using ClassificationReport = ClassificationReportOf<double>;
using ClassificationIntervals = ClassificationReportOf<Interval>;

/// Throws Error(kShape) unless there are examples, and classes^2 counts >= 0.
ClassificationReport classification_report(const ConfusionMatrix& confusion,
                                           AbsentClasses absent = AbsentClasses::kLeftOut);

/// Bootstrap intervals of all numbers of the report. A resample draws counts of the cells of the
/// matrix, not examples.
ClassificationIntervals classification_intervals(const Context& ctx,
                                                 const ConfusionMatrix& confusion,
                                                 const BootstrapOptions& options = {},
                                                 AbsentClasses absent = AbsentClasses::kLeftOut);

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
    detail::visit_averages(self, f);
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
