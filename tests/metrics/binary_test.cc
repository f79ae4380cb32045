// SPDX-License-Identifier: Apache-2.0
// golden_test.cc compares the numbers with scikit-learn's.
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"
#include "fovea/metrics/probabilities.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Flags = std::vector<std::uint8_t>;

TEST(RocAuc, IsTheShareOfPairsInTheRightOrder) {
  Random random(1, RandomUse::kTest);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> scores;
    Flags truth = {0, 1};
    const index n = 2 + random.below(40);
    for (index i = 0; i < n; ++i) {
      scores.push_back(static_cast<float>(random.below(10)) - 5);
      if (i >= 2) truth.push_back(random.below(2) != 0);
    }
    double right = 0, pairs = 0;
    for (std::size_t a = 0; a < scores.size(); ++a) {
      for (std::size_t b = 0; b < scores.size(); ++b) {
        if (truth[a] != 1 || truth[b] != 0) continue;
        right += scores[a] > scores[b] ? 1 : scores[a] == scores[b] ? 0.5 : 0;
        pairs += 1;
      }
    }
    EXPECT_NEAR(roc_auc<float>(scores, truth), right / pairs, 1e-15);
  }
}

TEST(RocAuc, OfOneKindIsNotDefined) {
  const std::vector<double> scores = {1, 2};
  const Flags ones = {1, 1}, zeros = {0, 0};
  EXPECT_TRUE(std::isnan(roc_auc<double>(scores, ones)));
  EXPECT_TRUE(std::isnan(roc_auc<double>(scores, zeros)));
  EXPECT_EQ(average_precision<double>(scores, ones), 1);
  EXPECT_TRUE(std::isnan(average_precision<double>(scores, zeros)));
}

TEST(AveragePrecision, AddsUpPrecisionsWhereRecallGrows) {
  const std::vector<double> scores = {9, 8, 7, 6, 6};
  const Flags truth = {1, 0, 1, 1, 0};
  EXPECT_NEAR(average_precision<double>(scores, truth), (1 + 2.0 / 3 + 3.0 / 5) / 3, 1e-15);
}

TEST(Binary, RefusesBadInput) {
  const std::vector<double> scores = {0.5, NAN}, two = {0.1, 7}, none = {};
  const Flags truth = {0, 1}, odd = {0, 3}, one = {1}, no_flags = {};
  EXPECT_THROWS(roc_auc<double>(scores, truth), kOptionValue,
                "roc_auc: the value of example 1 is nan");
  EXPECT_THROWS(average_precision<double>(two, odd), kOptionValue,
                "average_precision: the true label of example 1 is 3; it must be 0 or 1");
  EXPECT_THROWS(roc_auc<double>(two, one), kShape, "1 true values, and 2 predicted ones");
  EXPECT_THROWS(binary_report<double>(two, truth), kOptionValue,
                "binary_report: the probability of example 1 is 7; it must be in [0, 1]");
  EXPECT_THROWS(binary_report<double>(none, no_flags), kShape, "there are no examples");
  EXPECT_GT(roc_auc<double>(two, truth), 0);  // scores may be any numbers
}

// Of intervals for each example, resampled here with the same counts.
TEST(BinaryIntervals, AreThoseOfResampledExamples) {
  Random random(4, RandomUse::kTest);
  std::vector<double> p;
  Flags truth;
  for (int n = 0; n < 80; ++n) {
    truth.push_back(random.below(3) == 0);
    p.push_back(static_cast<double>(random.below(20) + (truth.back() != 0 ? 10 : 0)) / 32);
  }
  const BinaryReport whole = binary_report<double>(p, truth);
  const BootstrapOptions options{.resamples = 2000, .seed = 6};
  const BinaryIntervals intervals = binary_intervals<double>(Context(2), p, truth, options);
  const std::vector<index> cells(80, 1);
  const auto repeated = [&](Vec<const index> times, Vec<double> out) {
    std::vector<double> scores;
    Flags labels;
    for (std::size_t n = 0; n < 80; ++n) {
      const auto count = static_cast<std::size_t>(times[static_cast<index>(n)]);
      scores.insert(scores.end(), count, p[n]);
      labels.insert(labels.end(), count, truth[n]);
    }
    index next = 0;
    BinaryReport::visit_numbers(binary_report<double>(scores, labels),
                                [&](const NumberName&, double x) { out[next++] = x; });
  };
  const auto expected = bootstrap(Context(2), cells, 5, repeated, {.resamples = 2000, .seed = 7});
  EXPECT_EQ(intervals.positives, whole.positives);
  std::size_t at = 0;
  BinaryIntervals::visit_numbers(intervals, [&](const NumberName& name, const Interval& interval) {
    const Interval& other = expected[at++];
    const double width = other.high - other.low;
    EXPECT_NEAR(interval.value, other.value, 1e-12) << name.name;
    EXPECT_NEAR(interval.low, other.low, 0.15 * width) << name.name;
    EXPECT_NEAR(interval.high, other.high, 0.15 * width) << name.name;
  });
}

TEST(BinaryIntervals, CountResamplesWithoutBothKinds) {
  const std::vector<double> p = {0.9, 0.2, 0.1};
  const Flags truth = {1, 0, 0};
  const auto intervals = binary_intervals<double>(Context(1), p, truth);
  // (2/3)^3 + (1/3)^3 of the resamples lack one kind, (2/3)^3 the positive one.
  EXPECT_NEAR(static_cast<double>(intervals.roc_auc.undefined), 333, 75);
  EXPECT_NEAR(static_cast<double>(intervals.average_precision.undefined), 296, 75);
  EXPECT_EQ(intervals.roc_auc.low, 1);
  EXPECT_EQ(intervals.log_loss.undefined, 0);
}

}  // namespace
}  // namespace fovea
