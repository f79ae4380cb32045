// SPDX-License-Identifier: Apache-2.0
// How well numbers are predicted.
#pragma once

#include <vector>

#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// y true, p predicted. Number is double, or Interval.
template <class Number>
struct RegressionReportOf {
  index examples = 0;
  Number mse = {};  ///< mean (y - p)^2
  Number mae = {};  ///< mean |y - p|
  /// 1 - sum (y - p)^2 / sum (y - mean y)^2. If all y are equal: 1 if all p are right, else 0. NaN
  /// of one example. (scikit-learn's r2_score.)
  Number r2 = {};
  Number pearson = {};   ///< correlation of y and p; NaN if all y, or all p, are equal
  Number spearman = {};  ///< correlation of their ranks; equal values share the mean of theirs

  /// Calls f(NumberName, number) for "mse", "mae", "r2", "pearson", "spearman".
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"mse"}, self.mse);
    f(NumberName{"mae"}, self.mae);
    f(NumberName{"r2"}, self.r2);
    f(NumberName{"pearson"}, self.pearson);
    f(NumberName{"spearman"}, self.spearman);
  }
  template <class Other>
  void take_sizes(const RegressionReportOf<Other>& other) {
    examples = other.examples;
  }
};
using RegressionReport = RegressionReportOf<double>;
using RegressionIntervals = RegressionReportOf<Interval>;

/// truth, predicted [N], finite. Throws Error(kShape) if the lengths differ or there are no
/// examples, Error(kOptionValue) for values that are not finite. T: float, double.
template <class T>
RegressionReport regression_report(Vec<const T> truth, Vec<const T> predicted);

/// Bootstrap intervals of all numbers of the report.
template <class T>
RegressionIntervals regression_intervals(const Context& ctx, Vec<const T> truth,
                                         Vec<const T> predicted,
                                         const BootstrapOptions& options = {});

}  // namespace fovea
