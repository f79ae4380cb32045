// SPDX-License-Identifier: Apache-2.0
// How well scores tell the examples that have a label from those that do not.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/calibration.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// The share of pairs of a positive and a negative example in which the positive one has the higher
/// score; a tie counts half (the area under the ROC curve: Hanley, McNeil 1982). NaN unless there
/// are examples of both kinds.
///
/// scores [N] finite, truth [N]: 1 for positive examples, else 0. Throws Error(kShape) if the
/// lengths differ or there are no examples, Error(kOptionValue) for other values. T: float, double.
template <class T>
double roc_auc(Vec<const T> scores, Vec<const std::uint8_t> truth);

/// sum_i (R_i - R_(i-1)) P_i over the distinct scores, descending, where P_i and R_i are precision
/// and recall if all with that score or more are predicted (scikit-learn's
/// average_precision_score). NaN without positive examples (scikit-learn: 0, and a warning).
/// Arguments as above.
template <class T>
double average_precision(Vec<const T> scores, Vec<const std::uint8_t> truth);

/// Number is double, or Interval.
template <class Number>
struct BinaryReportOf {
  index examples = 0;
  index positives = 0;
  Number roc_auc = {};
  Number average_precision = {};
  Number log_loss = {};  ///< as in ProbabilityReport
  Number brier = {};     ///< mean (p - truth)^2
  Number ece = {};       ///< of reliability() for one label

  /// Calls f(NumberName, number) for "roc_auc", "average_precision", "log_loss", "brier", "ece".
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"roc_auc"}, self.roc_auc);
    f(NumberName{"average_precision"}, self.average_precision);
    f(NumberName{"log_loss"}, self.log_loss);
    f(NumberName{"brier"}, self.brier);
    f(NumberName{"ece"}, self.ece);
  }
  template <class Other>
  void take_sizes(const BinaryReportOf<Other>& other) {
    examples = other.examples;
    positives = other.positives;
  }
};
using BinaryReport = BinaryReportOf<double>;
using BinaryIntervals = BinaryReportOf<Interval>;

/// The report on probabilities of one label: arguments as above, in [0, 1]; bins >= 1.
template <class T>
BinaryReport binary_report(Vec<const T> probabilities, Vec<const std::uint8_t> truth,
                           index bins = kReliabilityBins);

/// Bootstrap intervals of all numbers of the report.
template <class T>
BinaryIntervals binary_intervals(const Context& ctx, Vec<const T> probabilities,
                                 Vec<const std::uint8_t> truth,
                                 const BootstrapOptions& options = {},
                                 index bins = kReliabilityBins);

}  // namespace fovea
