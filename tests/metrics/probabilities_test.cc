// SPDX-License-Identifier: Apache-2.0
// golden_test.cc compares the numbers with scikit-learn's, and calibration errors with the
// formula of Guo et al. 2017.
#include "fovea/metrics/probabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fovea/base/random.h"
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

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

TEST(MostLikelyClasses, AreTheFirstLargest) {
  const std::vector<float> scores = {1, 3, 3, -1, -2, -3, -kInfinite, -kInfinite, 0};
  EXPECT_EQ(most_likely_classes<float>({scores.data(), 3, 3}),
            (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(most_likely_classes<float>({scores.data(), 2, 2, 4}),
            (std::vector<std::int32_t>{1, 0}));
}

TEST(MostLikelyClasses, NanIsAnError) {
  const std::vector<float> scores = {1, 3, kNan, 0};
  EXPECT_THROWS(most_likely_classes<float>({scores.data(), 2, 2}), kOptionValue,
                "most_likely_classes: score 0 of example 1 is NaN");
  EXPECT_THROWS(most_likely_classes<float>({scores.data(), 2, 0}), kShape, "for each class");
}

TEST(LabelsAbove, IncludeTheThreshold) {
  const std::vector<double> p = {0.4, 0.5, 0.6, 0.9};
  const Rows<const double> rows(p.data(), 2, 2);
  EXPECT_EQ(labels_above(rows), (std::vector<std::uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(labels_above(rows, 0.7), (std::vector<std::uint8_t>{0, 0, 0, 1}));
  const std::vector<double> bad = {0, static_cast<double>(kNan)};
  EXPECT_THROWS(labels_above<double>({bad.data(), 1, 2}), kOptionValue, "score 1 of example 0");
}

TEST(Reliability, BinsHoldTheirUpperEdge) {
  const std::vector<double> p = {0, 0.2, 0.20001, 0.4, 0.6, 0.61, 1};
  const std::vector<std::uint8_t> truth = {0, 1, 0, 1, 1, 0, 1};
  const ReliabilityTable table = reliability<double>(p, truth, 5);
  std::vector<index> counts;
  for (const ReliabilityBin& bin : table.bins) counts.push_back(bin.count);
  EXPECT_THAT(counts, testing::ElementsAre(2, 2, 1, 1, 1));
  EXPECT_EQ(table.examples, 7);
  EXPECT_EQ(table.bins[0].confidence, 0.1);
  EXPECT_EQ(table.bins[0].accuracy, 0.5);
  EXPECT_EQ(table.bins[1].low, 0.2);
  EXPECT_EQ(table.bins[1].high, 0.4);
}

// Each edge m / bins and the numbers beside it, for numbers of bins whose product rounds.
TEST(Reliability, EveryEdgeIsInTheBinThatItEnds) {
  for (const index bins : {1, 3, 7, 10, 15, 49, 1000}) {
    for (index m = 1; m <= bins; ++m) {
      const double edge = static_cast<double>(m) / static_cast<double>(bins);
      const std::vector<double> p = {std::nextafter(edge, 0), edge, std::nextafter(edge, 2)};
      const std::size_t inside = m == bins ? 2 : 3;
      const std::vector<std::uint8_t> truth(inside, 1);
      const auto table = reliability<double>({p.data(), static_cast<index>(inside)}, truth, bins);
      ASSERT_EQ(table.bins[static_cast<std::size_t>(m - 1)].count, 2) << m << " of " << bins;
    }
  }
}

TEST(Reliability, OfTheMostLikelyClass) {
  const std::vector<float> p = {0.75f, 0.25f, 0, 0.25f, 0.25f, 0.5f, 0.5f, 0.5f, 0};
  const std::vector<std::int32_t> truth = {0, 0, 1};
  const ReliabilityTable table = reliability<float>({p.data(), 3, 3}, truth, 4);
  EXPECT_EQ(table.bins[2].count, 1);
  EXPECT_EQ(table.bins[2].accuracy, 1);
  EXPECT_EQ(table.bins[1].count, 2);
  EXPECT_EQ(table.bins[1].accuracy, 0);  // of equal probabilities the first counts
  EXPECT_EQ(table.bins[1].confidence, 0.5);
  EXPECT_NEAR(table.ece, 1.0 / 3 * 0.25 + 2.0 / 3 * 0.5, 1e-15);
  EXPECT_EQ(table.mce, 0.5);
}

TEST(Reliability, OfCalibratedProbabilitiesHasALowError) {
  Random random(1, RandomUse::kTest);
  std::vector<double> p, bold;
  std::vector<std::uint8_t> truth;
  for (int i = 0; i < 40000; ++i) {
    p.push_back(random.uniform());
    bold.push_back(p.back() < 0.5 ? p.back() / 2 : (1 + p.back()) / 2);
    truth.push_back(random.uniform() < p.back());
  }
  EXPECT_LT(reliability<double>(p, truth).ece, 0.02);
  EXPECT_NEAR(reliability<double>(bold, truth).ece, 0.125, 0.02);
}

TEST(Reliability, RefusesBadInput) {
  const std::vector<double> p = {0.5, 0.5}, none = {}, scores = {-1, 2};
  const std::vector<std::int32_t> truth = {0}, outside = {2};
  const std::vector<std::uint8_t> flags = {0, 1}, no_flags = {}, odd = {0, 2};
  const Rows<const double> rows(p.data(), 1, 2);
  EXPECT_THROWS(reliability(rows, truth, 0), kShape, "reliability: bins must be at least 1");
  EXPECT_THROWS(reliability(rows, outside), kShape, "the labels of 2 classes are 0 to 1");
  EXPECT_THROWS(reliability<double>({p.data(), 2, 1}, truth), kShape, "1 true values, and 2");
  EXPECT_THROWS(reliability<double>({scores.data(), 1, 2}, truth), kOptionValue,
                "reliability: the probability of class 0 of example 0 is -1");
  EXPECT_THROWS(reliability<double>(p, odd), kOptionValue, "it must be 0 or 1");
  EXPECT_THROWS(reliability<double>(scores, flags), kOptionValue, "must be in [0, 1]");
  EXPECT_THROWS(reliability<double>(none, no_flags), kShape, "there are no examples");
}

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

// The intervals are those of examples that are resampled here with the same counts.
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

TEST(PrecisionRecall, HasAPointForEachThreshold) {
  const std::vector<float> p = {0.9F, 0.8F, 0.8F, 0.3F, 0.1F};
  const std::vector<std::uint8_t> truth = {1, 0, 1, 1, 0};
  const auto points = precision_recall_curve(p, truth);
  ASSERT_EQ(points.size(), 3U);  // behind the last hit precision only falls
  EXPECT_NEAR(points[0].recall, 1 / 3.0, 1e-12);
  EXPECT_EQ(points[0].precision, 1);
  EXPECT_NEAR(points[1].recall, 2 / 3.0, 1e-12);  // equal probabilities are told together
  EXPECT_NEAR(points[1].precision, 2 / 3.0, 1e-12);
  EXPECT_EQ(points[2].recall, 1);
  EXPECT_EQ(points[2].precision, 0.75);
  EXPECT_EQ(points[2].threshold, double{0.3F});
}

TEST(PrecisionRecall, OfManyPointsKeepsSome) {
  std::vector<float> p;
  std::vector<std::uint8_t> truth;
  for (int i = 0; i < 5000; ++i) {
    p.push_back(static_cast<float>(5000 - i) / 5000);
    truth.push_back(i % 3 == 0 ? 1 : 0);
  }
  const auto points = precision_recall_curve(p, truth, 50);
  EXPECT_LE(points.size(), 52U);
  EXPECT_GE(points.size(), 50U);
  EXPECT_EQ(points.back().recall, 1);
  for (std::size_t n = 1; n < points.size(); ++n) EXPECT_GT(points[n].recall, points[n - 1].recall);
  EXPECT_TRUE(precision_recall_curve(p, std::vector<std::uint8_t>(5000)).empty());
}

}  // namespace
}  // namespace fovea
