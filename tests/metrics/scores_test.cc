// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "fovea/metrics/inputs.h"
#include "fovea/metrics/sum.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Scores, AreRatiosOfHits) {
  const Scores scores = detail::scores_of({.both = 3, .truth = 4, .predicted = 6});
  EXPECT_EQ(scores.precision, 0.5);
  EXPECT_EQ(scores.recall, 0.75);
  EXPECT_EQ(scores.f1, 0.6);
}

TEST(Scores, ADivisionByZeroGivesZero) {
  for (const detail::Hits& hits : {detail::Hits{}, {.truth = 2}, {.predicted = 2}}) {
    const Scores scores = detail::scores_of(hits);
    EXPECT_EQ(scores.precision, 0);
    EXPECT_EQ(scores.recall, 0);
    EXPECT_EQ(scores.f1, 0);
  }
}

TEST(Scores, MeanIsWeighted) {
  const Scores mean = detail::mean_of({{1, 2, 3}, {5, 6, 7}}, {3, 1});
  EXPECT_EQ(mean.precision, 2);
  EXPECT_EQ(mean.recall, 3);
  EXPECT_EQ(mean.f1, 4);
  EXPECT_EQ(detail::mean_of({{1, 1, 1}}, {0}).f1, 0);
}

TEST(Scores, AreVisitedByNameAndLabel) {
  const std::vector<Scores> classes = {{1, 2, 3}, {4, 5, 6}};
  std::string seen;
  detail::visit_classes(classes, [&](const NumberName& name, double number) {
    seen += std::string(name.name) + std::to_string(name.label) + '=' +
            std::to_string(static_cast<int>(number)) + ' ';
  });
  EXPECT_EQ(seen, "precision0=1 recall0=2 f10=3 precision1=4 recall1=5 f11=6 ");
}

TEST(Spread, OfARunAndOfSeveral) {
  EXPECT_EQ(mean({3}), 3);
  EXPECT_EQ(mean({1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(sample_deviation({1, 3, 5}), 2);
  EXPECT_EQ(sample_deviation({.25, .25}), 0);
  EXPECT_THROWS(mean({}), kShape, "no values");
  EXPECT_THROWS(sample_deviation({1}), kShape, "expected two values or more, got 1");
}

}  // namespace
}  // namespace fovea

namespace fovea::detail {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(MetricInputs, LengthsAgreeAndAreNotZero) {
  check_lengths("f1", 3, 3);
  EXPECT_THROWS(check_lengths("f1", 3, 4), kShape,
                "f1: there are 3 true values, and 4 predicted ones");
  EXPECT_THROWS(check_lengths("f1", 0, 0), kShape, "f1: there are no examples");
}

TEST(MetricInputs, LabelsAreInRange) {
  const std::vector<std::int32_t> good = {0, 2, 1}, high = {0, 3}, low = {-1};
  check_labels("f1", "true", good, 3);
  EXPECT_THROWS(check_labels("f1", "true", high, 3), kShape,
                "f1: the true label of example 1 is 3; the labels of 3 classes are 0 to 2");
  EXPECT_THROWS(check_labels("f1", "true", low, 3), kShape, "of example 0 is -1");
  EXPECT_THROWS(check_labels("f1", "true", low, 0), kShape, "classes must be at least 1; it is 0");
}

TEST(MetricInputs, FlagsAreZeroOrOne) {
  const std::vector<std::uint8_t> good = {0, 1}, bad = {1, 0, 2};
  check_flags("auc", "the true label of example", good);
  EXPECT_THROWS(check_flags("auc", "the true label of example", bad), kOptionValue,
                "auc: the true label of example 2 is 2; it must be 0 or 1");
}

TEST(MetricInputs, ValuesAreFinite) {
  const std::vector<float> good = {1.5f, -2};
  EXPECT_EQ(finite_values<float>("mse", good), (std::vector<double>{1.5, -2}));
  for (const double x : {kNan, 1 / 0.0, -1 / 0.0}) {
    const std::vector<double> bad = {0, x};
    EXPECT_THROWS(finite_values<double>("mse", bad), kOptionValue,
                  "mse: the value of example 1 is");
  }
}

TEST(MetricInputs, ProbabilitiesAreInTheirInterval) {
  const std::vector<float> good = {0, 0.25f, 1};
  EXPECT_EQ(probabilities_of<float>("ece", good), (std::vector<double>{0, 0.25, 1}));
  for (const double p : {-1e-9, 1.1, kNan}) {
    const std::vector<double> bad = {0.5, p};
    EXPECT_THROWS(probabilities_of<double>("ece", bad), kOptionValue,
                  "ece: the probability of example 1 is");
  }
}

TEST(MetricInputs, DistributionsAddUpToOne) {
  const std::vector<float> thirds(6, 1.0f / 3);
  EXPECT_EQ(distributions_of<float>("ece", {thirds.data(), 2, 3}).size(), 6);
  EXPECT_EQ(distributions_of<float>("ece", {thirds.data() + 1, 1, 3}).size(), 3);
  const std::vector<double> bad = {0.5, 0.5, 0.5, 0.6}, outside = {1, 0, 2, -1};
  EXPECT_THROWS(distributions_of<double>("ece", {bad.data(), 2, 2}), kOptionValue,
                "ece: the probabilities of example 1 add up to 1.1; they must add up to 1");
  EXPECT_THROWS(distributions_of<double>("ece", {outside.data(), 2, 2}), kOptionValue,
                "ece: the probability of class 0 of example 1 is 2; it must be in [0, 1]");
}

}  // namespace
}  // namespace fovea::detail
