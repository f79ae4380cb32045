// SPDX-License-Identifier: Apache-2.0
// golden_test.cc compares the numbers with those of scikit-learn and SciPy.
#include "fovea/metrics/regression.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Regression, OfPerfectPredictions) {
  const std::vector<float> y = {1, 2, 4};
  const RegressionReport report = regression_report<float>(y, y);
  EXPECT_EQ(report.mse, 0);
  EXPECT_EQ(report.mae, 0);
  EXPECT_EQ(report.r2, 1);
  EXPECT_NEAR(report.pearson, 1, 1e-15);
  EXPECT_NEAR(report.spearman, 1, 1e-15);
}

// The mean of equal numbers may differ from them by rounding, which must not become a correlation.
TEST(Regression, OfEqualNumbersHasNoCorrelation) {
  const std::vector<double> y(7, 0.1), p = {1, 2, 3, 4, 5, 6, 7}, zeros(7, 0.0);
  const RegressionReport report = regression_report<double>(y, p);
  EXPECT_EQ(report.r2, 0);
  EXPECT_TRUE(std::isnan(report.pearson) && std::isnan(report.spearman));
  EXPECT_TRUE(std::isnan(regression_report<double>(p, zeros).pearson));
  EXPECT_EQ(regression_report<double>(y, y).r2, 1);
  const std::vector<double> one = {3};
  EXPECT_TRUE(std::isnan(regression_report<double>(one, one).r2));
}

TEST(Regression, RanksDoNotSeeTheScale) {
  const std::vector<double> y = {-3, -1, 0, 2, 5}, p = {-1000, -1, -0.5, 1, 1e9};
  EXPECT_NEAR(regression_report<double>(y, p).spearman, 1, 1e-15);
  EXPECT_LT(regression_report<double>(y, p).pearson, 0.9);
}

TEST(Regression, CorrelatesLargeAndSmallNumbers) {
  for (const double scale : {1e-300, 1e-160, 1e160, 1e300, 8e307}) {
    const std::vector<double> y = {-2 * scale, 0, scale, 2 * scale}, p = {1, 2, 3, 5};
    // Covariance 33 / 16 and twice the variance 35 / 16.
    EXPECT_NEAR(regression_report<double>(y, p).pearson, 33.0 / 35, 1e-14) << scale;
    EXPECT_NEAR(regression_report<double>(p, y).pearson, 33.0 / 35, 1e-14) << scale;
  }
}

TEST(Regression, IsExactFarFromZero) {
  std::vector<double> y, p;
  for (int i = 0; i < 1000; ++i) {
    y.push_back(1e9 + i % 10);
    p.push_back(1e9 + i % 10 + (i % 2 == 0 ? 1 : -1));
  }
  const RegressionReport report = regression_report<double>(y, p);
  EXPECT_NEAR(report.r2, 1 - 1 / 8.25, 1e-13);
  // Covariance 8.25 - .5 of numbers with variances 8.25 and 8.25 + 1 - 1.
  EXPECT_NEAR(report.pearson, (8.25 - 0.5) / std::sqrt(8.25 * 8.25), 1e-13);
}

TEST(Regression, RefusesBadInput) {
  const std::vector<double> y = {1, 2}, one = {1}, none = {}, bad = {0, HUGE_VAL};
  EXPECT_THROWS(regression_report<double>(y, one), kShape,
                "regression_report: there are 2 true values, and 1 predicted ones");
  EXPECT_THROWS(regression_report<double>(none, none), kShape, "there are no examples");
  EXPECT_THROWS(regression_report<double>(y, bad), kOptionValue,
                "regression_report: the value of example 1 is inf");
}

// Resamples by counts are resamples by repetition.
TEST(RegressionIntervals, AreThoseOfResampledExamples) {
  Random random(4, RandomUse::kTest);
  std::vector<double> y, p;
  for (int n = 0; n < 60; ++n) {
    y.push_back(static_cast<double>(random.below(8)));
    p.push_back(y.back() + static_cast<double>(random.below(9)) - 4);
  }
  const BootstrapOptions options{.resamples = 200, .seed = 6};
  const RegressionIntervals intervals = regression_intervals<double>(Context(2), y, p, options);
  const std::vector<index> cells(60, 1);
  const auto repeated = [&](Vec<const index> times, Vec<double> out) {
    std::vector<double> truth, predicted;
    for (std::size_t n = 0; n < 60; ++n) {
      const auto count = static_cast<std::size_t>(times[static_cast<index>(n)]);
      truth.insert(truth.end(), count, y[n]);
      predicted.insert(predicted.end(), count, p[n]);
    }
    index next = 0;
    RegressionReport::visit_numbers(regression_report<double>(truth, predicted),
                                    [&](const NumberName&, double x) { out[next++] = x; });
  };
  const auto expected = bootstrap(Context(1), cells, 5, repeated, options);
  std::size_t at = 0;
  RegressionIntervals::visit_numbers(intervals,
                                     [&](const NumberName& name, const Interval& interval) {
                                       const Interval& other = expected[at++];
                                       EXPECT_NEAR(interval.value, other.value, 1e-12) << name.name;
                                       EXPECT_NEAR(interval.low, other.low, 1e-12) << name.name;
                                       EXPECT_NEAR(interval.high, other.high, 1e-12) << name.name;
                                     });
}

}  // namespace
}  // namespace fovea
