// SPDX-License-Identifier: Apache-2.0
// golden_test.cc compares the numbers with scikit-learn's.
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"
#include "fovea/metrics/probabilities.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Probability, OneCertainMistakeCostsWhatTheTypeCanTell) {
  const std::vector<double> p = {1, 0};
  const std::vector<float> q = {1, 0};
  const std::vector<std::int32_t> truth = {1};
  EXPECT_NEAR(probability_report<double>({p.data(), 1, 2}, truth).log_loss, 36.0437, 1e-4);
  EXPECT_NEAR(probability_report<float>({q.data(), 1, 2}, truth).log_loss, 15.9424, 1e-4);
}

TEST(Probability, BrierScoreOfTwoClassesIsThatOfOne) {
  const std::vector<double> two = {0.75, 0.25}, three = {0.75, 0.25, 0};
  const std::vector<std::int32_t> truth = {0};
  EXPECT_EQ(probability_report<double>({two.data(), 1, 2}, truth).brier, 0.0625);
  EXPECT_EQ(probability_report<double>({three.data(), 1, 3}, truth).brier, 0.125);
}

TEST(Probability, RefusesBadInput) {
  const std::vector<float> p = {0.5f, 0.5f, 0.5f, NAN};
  const std::vector<std::int32_t> one = {0}, two = {0, 1}, none = {};
  EXPECT_THROWS(probability_report<float>({p.data(), 2, 2}, one), kShape,
                "probability_report: there are 1 true values, and 2 predicted ones");
  EXPECT_THROWS(probability_report<float>({p.data(), 2, 2}, two), kOptionValue,
                "the probability of class 1 of example 1 is nan");
  EXPECT_THROWS(probability_report<float>({p.data(), 0, 2}, none), kShape, "no examples");
  EXPECT_THROWS(probability_report<float>({p.data(), 1, 2}, one, 0), kShape, "bins");
}

TEST(ProbabilityIntervals, HoldTheValuesOfTheReport) {
  Random random(2, RandomUse::kTest);
  std::vector<double> p;
  std::vector<std::int32_t> truth;
  for (int n = 0; n < 1000; ++n) {
    const double a = random.uniform();
    p.insert(p.end(), {a, 1 - a});
    truth.push_back(random.uniform() < a ? 0 : 1);
  }
  const Rows<const double> rows(p.data(), 1000, 2);
  const auto whole = probability_report(rows, truth);
  const auto intervals = probability_intervals(Context(2), rows, truth, {.seed = 3});
  EXPECT_EQ(intervals.examples, 1000);
  EXPECT_EQ(intervals.log_loss.value, whole.log_loss);
  EXPECT_LT(intervals.log_loss.low, whole.log_loss);
  EXPECT_GT(intervals.log_loss.high, whole.log_loss);
  EXPECT_LT(intervals.log_loss.high - intervals.log_loss.low, 0.2);
  EXPECT_EQ(intervals.brier.value, whole.brier);
  EXPECT_EQ(intervals.ece.value, whole.ece);
  // The loss is a mean, so that its interval is that of a mean.
  std::vector<double> losses;
  for (index n = 0; n < 1000; ++n)
    losses.push_back(-std::log(rows[n][truth[static_cast<std::size_t>(n)]]));
  const Interval mean = bootstrap_mean(Context(1), losses, {.seed = 3});
  EXPECT_NEAR(intervals.log_loss.low, mean.low, 1e-12);
  EXPECT_NEAR(intervals.log_loss.high, mean.high, 1e-12);
}

}  // namespace
}  // namespace fovea
