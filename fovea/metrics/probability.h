// SPDX-License-Identifier: Apache-2.0
// How good the predicted probabilities of K classes are.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/calibration.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// Number is double, or Interval.
template <class Number>
struct ProbabilityReportOf {
  index examples = 0;
  /// - log p of the true class, mean, in nats. p is first moved into [e, 1 - e], with e the epsilon
  /// of T, as scikit-learn does: one certain mistake costs at most 15.9 nats in float, 36 in
  /// double.
  Number log_loss = {};
  /// sum_k (p_k - [k is the true class])^2, mean: in [0, 2] (Brier 1950, eq. 2). For two classes
  /// half of it, so that it is the score of one of them (scikit-learn's scale_by_half="auto").
  Number brier = {};
  Number ece = {};  ///< of reliability(): a resample's is larger on average than that of the whole

  /// Calls f(NumberName, number) for "log_loss", "brier", "ece".
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"log_loss"}, self.log_loss);
    f(NumberName{"brier"}, self.brier);
    f(NumberName{"ece"}, self.ece);
  }
  template <class Other>
  void take_sizes(const ProbabilityReportOf<Other>& other) {
    examples = other.examples;
  }
};
using ProbabilityReport = ProbabilityReportOf<double>;
using ProbabilityIntervals = ProbabilityReportOf<Interval>;

/// probabilities [N, K], truth [N] in [0, K). Throws as reliability() does. T: float, double.
template <class T>
ProbabilityReport probability_report(Rows<const T> probabilities, Vec<const std::int32_t> truth,
                                     index bins = kReliabilityBins);

/// Bootstrap intervals of all numbers of the report.
template <class T>
ProbabilityIntervals probability_intervals(const Context& ctx, Rows<const T> probabilities,
                                           Vec<const std::int32_t> truth,
                                           const BootstrapOptions& options = {},
                                           index bins = kReliabilityBins);

}  // namespace fovea
