// SPDX-License-Identifier: Apache-2.0
// golden_test.cc compares the numbers with scikit-learn's.
#include "fovea/metrics/classification.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"
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

using Labels = std::vector<std::uint8_t>;

Rows<const std::uint8_t> rows(const Labels& labels, index columns) {
  return {labels.data(), static_cast<index>(labels.size()) / columns, columns};
}

TEST(Multilabel, CountsLabelsAndExamples) {
  const Labels truth = {1, 0, 1, 0, 0, 0, 1, 1, 0}, predicted = {1, 0, 1, 0, 0, 0, 0, 1, 1};
  const MultilabelReport report = multilabel_report(rows(truth, 3), rows(predicted, 3));
  EXPECT_EQ(report.examples, 3);
  EXPECT_EQ(report.subset_accuracy, 2.0 / 3);
  EXPECT_EQ(report.hamming_loss, 2.0 / 9);
  EXPECT_THAT(report.support, ElementsAre(2, 1, 1));
  EXPECT_THAT(report.predicted, ElementsAre(1, 1, 2));
  EXPECT_EQ(report.micro.f1, 0.75);
  // An example without labels, true or predicted, scores 0: a division by zero.
  EXPECT_EQ(report.samples.f1, (1 + 0 + 0.5) / 3);
}

TEST(Multilabel, OneLabelIsScoredToo) {
  const Labels truth = {1, 0, 1}, predicted = {1, 1, 0};
  const MultilabelReport report = multilabel_report(rows(truth, 1), rows(predicted, 1));
  EXPECT_EQ(report.labels[0].f1, 0.5);
  EXPECT_EQ(report.macro.f1, 0.5);
  EXPECT_EQ(report.micro.f1, 0.5);
}

TEST(Multilabel, ReadsStridedRows) {
  const Labels truth = {1, 0, 7, 0, 1, 7}, predicted = {1, 0, 0, 1};
  const MultilabelReport report = multilabel_report({truth.data(), 2, 2, 3}, rows(predicted, 2));
  EXPECT_EQ(report.subset_accuracy, 1);
}

TEST(Multilabel, RefusesBadLabels) {
  const Labels six(6, 1), three(3, 0), odd = {0, 1, 0, 2, 0, 1};
  EXPECT_THROWS(multilabel_report(rows(six, 3), rows(six, 2)), kShape,
                "multilabel_report: there are 3 true labels, and 2 predicted ones");
  EXPECT_THROWS(multilabel_report(rows(six, 3), rows(three, 3)), kShape,
                "there are 2 true values, and 1 predicted ones");
  EXPECT_THROWS(multilabel_report({six.data(), 0, 3}, {six.data(), 0, 3}), kShape, "no examples");
  EXPECT_THROWS(multilabel_report({six.data(), 2, 0}, {six.data(), 2, 0}), kShape, "at least one");
  EXPECT_THROWS(multilabel_report(rows(six, 3), rows(odd, 3)), kOptionValue,
                "multilabel_report: example 1, predicted label 0 is 2; it must be 0 or 1");
}

TEST(MultilabelIntervals, HoldTheValuesOfTheReport) {
  Random random(1, RandomUse::kTest);
  Labels truth, predicted;
  for (int i = 0; i < 4 * 500; ++i) {
    truth.push_back(random.below(10) < 3);
    predicted.push_back(random.below(10) < 7 ? truth.back() : !truth.back());
  }
  const auto whole = multilabel_report(rows(truth, 4), rows(predicted, 4));
  const auto intervals = multilabel_intervals(Context(2), rows(truth, 4), rows(predicted, 4));
  std::vector<double> values;
  MultilabelReport::visit_numbers(
      whole, [&](const NumberName&, double number) { values.push_back(number); });
  std::size_t at = 0;
  MultilabelIntervals::visit_numbers(intervals,
                                     [&](const NumberName& name, const Interval& interval) {
                                       EXPECT_EQ(interval.value, values[at++]) << name.name;
                                       EXPECT_LT(interval.low, interval.value) << name.name;
                                       EXPECT_GT(interval.high, interval.value) << name.name;
                                       EXPECT_LT(interval.high - interval.low, 0.2) << name.name;
                                     });
  EXPECT_EQ(at, values.size());
  EXPECT_EQ(intervals.support, whole.support);
}

}  // namespace
}  // namespace fovea
