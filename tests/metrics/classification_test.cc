// SPDX-License-Identifier: Apache-2.0
// golden_test.cc compares the numbers with scikit-learn's.
#include "fovea/metrics/classification.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

const std::vector<std::int32_t> kTruth = {0, 0, 0, 1, 1, 2};
const std::vector<std::int32_t> kPredicted = {0, 0, 1, 1, 2, 1};

TEST(Confusion, CountsPairs) {
  const ConfusionMatrix confusion = confusion_matrix(kTruth, kPredicted, 4);
  EXPECT_THAT(confusion.counts, ElementsAre(2, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(confusion.at(1, 2), 1);
}

TEST(Confusion, RefusesBadLabels) {
  const std::vector<std::int32_t> short_one = {0}, none = {};
  EXPECT_THROWS(confusion_matrix(kTruth, short_one, 3), kShape,
                "confusion_matrix: there are 6 true values, and 1 predicted ones");
  EXPECT_THROWS(confusion_matrix(none, none, 3), kShape, "there are no examples");
  EXPECT_THROWS(confusion_matrix(kTruth, kPredicted, 2), kShape,
                "the true label of example 5 is 2; the labels of 2 classes are 0 to 1");
  EXPECT_THROWS(confusion_matrix(short_one, short_one, index{1} << 40), kShape, "classes^2");
}

TEST(Classification, SaysHowOftenEachClassOccurs) {
  const auto report = classification_report(confusion_matrix(kTruth, kPredicted, 4));
  EXPECT_EQ(report.examples, 6);
  EXPECT_EQ(report.accuracy, 0.5);
  EXPECT_THAT(report.support, ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(report.predicted, ElementsAre(2, 3, 1, 0));
  EXPECT_EQ(report.classes[0].precision, 1);
  EXPECT_EQ(report.classes[1].recall, 0.5);
  EXPECT_EQ(report.classes[3].f1, 0);
}

TEST(Classification, AbsentClassesAreLeftOutOfTheMacroAverageUnlessAskedFor) {
  const ConfusionMatrix confusion = confusion_matrix(kTruth, kPredicted, 4);
  const double of_three = classification_report(confusion).macro.f1;
  const double of_four = classification_report(confusion, AbsentClasses::kAsZero).macro.f1;
  EXPECT_NEAR(of_three, (0.8 + 0.4 + 0) / 3, 1e-15);
  EXPECT_NEAR(of_four, (0.8 + 0.4 + 0) / 4, 1e-15);
}

TEST(Classification, RefusesAMatrixThatIsNone) {
  EXPECT_THROWS(classification_report({2, {1, 2, 3}}), kShape,
                "the matrix of 2 classes has 3 counts; it must have 4 of them");
  EXPECT_THROWS(classification_report({0, {}}), kShape, "the matrix of 0 classes");
  EXPECT_THROWS(classification_report({2, {1, 2, 3, -1}}), kShape,
                "the count of true class 1, predicted 1 is -1");
  EXPECT_THROWS(classification_report({2, {0, 0, 0, 0}}), kShape, "there are no examples");
}

TEST(ClassificationIntervals, HaveTheWidthOfTheBinomialDistribution) {
  const ConfusionMatrix confusion{2, {8000, 2000, 3000, 12000}};
  const auto report =
      classification_intervals(Context(2), confusion, {.resamples = 4000, .seed = 1});
  const double half = 1.96 * std::sqrt(0.8 * 0.2 / 25000);
  EXPECT_EQ(report.examples, 25000);
  EXPECT_EQ(report.accuracy.value, 0.8);
  EXPECT_NEAR(report.accuracy.low, 0.8 - half, 0.1 * half);
  EXPECT_NEAR(report.accuracy.high, 0.8 + half, 0.1 * half);
  EXPECT_THAT(report.support, ElementsAre(10000, 15000));
  const auto whole = classification_report(confusion);
  EXPECT_EQ(report.classes[1].f1.value, whole.classes[1].f1);
  EXPECT_LT(report.macro.f1.low, whole.macro.f1);
  EXPECT_GT(report.macro.f1.high, whole.macro.f1);
}

TEST(ClassificationIntervals, OfACertainResultHaveNoWidth) {
  const auto report = classification_intervals(Context(1), {3, {5, 0, 0, 0, 5, 0, 0, 0, 0}});
  EXPECT_EQ(report.accuracy.low, 1);
  EXPECT_EQ(report.accuracy.high, 1);
  EXPECT_EQ(report.classes[2].f1.high, 0);
}

}  // namespace
}  // namespace fovea
