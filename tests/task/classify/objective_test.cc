// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/task/classify/run.h"

namespace fovea {
namespace {

Examples two_of(std::vector<std::int32_t> labels) {
  return {.stream = {3, 4},
          .starts = {0, 1, 2},
          .labels = std::move(labels),
          .label_starts = {0, 1, 2}};
}

double value_of(const Validation& validation, std::string_view name) {
  for (const MetricValue& metric : validation.metrics) {
    if (metric.name == name) return metric.value;
  }
  return -1;
}

TEST(Measure, OfClassesAndTheirScore) {
  ClassifierConfig config;
  config.task = ClassifierTask::kBinary;
  config.classes = 2;
  SetPredictions said{.loss = 3, .weight = 2, .values = {0.2f, 0.8f, 0.1f, 0.9f}};
  const Examples truth = two_of({1, 0});
  const Validation right = measure(said, truth, config, {}, ClassifierMetric::kAuto);
  EXPECT_EQ(right.loss, 1.5);
  EXPECT_EQ(value_of(right, "accuracy"), 0.5);
  EXPECT_NEAR(value_of(right, "macro_f1"), 1.0 / 3, 1e-12);
  EXPECT_NEAR(right.score.value(), 0.5, 1e-6);
  EXPECT_FALSE(measure(said, truth, config, {}, ClassifierMetric::kLoss).score.has_value());
  said.loss = 2;  // the same accuracy, a lower loss
  EXPECT_GT(measure(said, truth, config, {}, ClassifierMetric::kAuto).score, right.score);
}

// Of four texts with one class and one with another, whoever always says the first has accuracy .8.
TEST(Measure, ScoresUnevenClassesByMacroF1) {
  ClassifierConfig config;
  config.task = ClassifierTask::kBinary;
  config.classes = 2;
  const Examples truth{.stream = {3, 4, 5, 6, 7},
                       .starts = {0, 1, 2, 3, 4, 5},
                       .labels = {0, 0, 0, 0, 1},
                       .label_starts = {0, 1, 2, 3, 4, 5}};
  const std::vector<float> first = {0.9f, 0.1f, 0.9f, 0.1f, 0.9f, 0.1f, 0.9f, 0.1f, 0.9f, 0.1f};
  const SetPredictions said{.loss = 5, .weight = 5, .values = first};
  const Validation uneven = measure(said, truth, config, {}, ClassifierMetric::kAuto);
  EXPECT_NEAR(uneven.score.value(), value_of(uneven, "macro_f1"), 1e-6);
  EXPECT_NEAR(value_of(uneven, "macro_f1"), 4.0 / 9, 1e-9);
  const Validation asked = measure(said, truth, config, {}, ClassifierMetric::kAccuracy);
  EXPECT_NEAR(asked.score.value(), 0.8, 1e-6);
}

TEST(Measure, OfLabelsAndNumbers) {
  ClassifierConfig config;
  config.task = ClassifierTask::kMultiLabel;
  config.classes = 2;
  const SetPredictions said{.loss = 1, .weight = 4, .values = {0.5f, 0.8f, 0.9f, 0.1f}};
  const Validation labels = measure(said, two_of({1, 0}), config, {}, ClassifierMetric::kAuto);
  EXPECT_NEAR(value_of(labels, "micro_f1"), 0.8, 1e-12);
  config.task = ClassifierTask::kRegression;
  config.classes = 1;
  Examples numbers = two_of({});
  numbers.label_starts = {0, 0, 0};
  numbers.numbers = {-1, 1};
  const SetPredictions off{.loss = 1, .weight = 2, .values = {-1, 2}};
  const Validation measured = measure(off, numbers, config, {100, 10}, ClassifierMetric::kAuto);
  EXPECT_NEAR(value_of(measured, "rmse"), 10 / std::sqrt(2), 1e-9);
  EXPECT_NEAR(value_of(measured, "pearson"), 1, 1e-9);
  EXPECT_NEAR(measured.score.value(), -10 / std::sqrt(2), 1e-6);
}

TEST(HitsOf, AreThoseOfTheLargestLogit) {
  Tape tape(Context(1), TapeMode::kTrain);
  const Variable logits = tape.result(3, 2, DType::kFloat32);
  const float values[] = {1, 2, 2, 1, 1, 1};
  std::copy_n(values, 6, logits.value<float>()[0]);
  const std::int32_t labels[] = {1, 1, 0}, unknown[] = {1, -1, -1};
  const auto hits = [&](const std::int32_t* of, ClassifierTask task) {
    const Hits found = hits_of(logits, {of, 3}, task);
    return std::vector<index>{found.right, found.of};
  };
  EXPECT_THAT(hits(labels, ClassifierTask::kSingleLabel), testing::ElementsAre(2, 3));
  EXPECT_THAT(hits(unknown, ClassifierTask::kSingleLabel), testing::ElementsAre(1, 1));
  EXPECT_THAT(hits(labels, ClassifierTask::kMultiLabel), testing::ElementsAre(0, 0));
  const Variable one = tape.result(3, 1, DType::kFloat32);
  const float binary[] = {.5F, -.5F, 0};
  std::copy_n(binary, 3, one.value<float>()[0]);
  const Hits found = hits_of(one, {labels, 3}, ClassifierTask::kBinary);
  EXPECT_EQ(found.right, 2);  // a logit of 0 is the first class, as in predictions()
}

// Two texts of a token each, of two classes, that are one update.
struct TwoTexts {
  ClassifierConfig config;
  ClassifierRun run;

  TwoTexts() {
    config.task = ClassifierTask::kBinary;
    config.classes = 2;
    config.vocabulary = 6;
    config.width = 4;
    config.block = 2;
    const TargetShape target{TargetKind::kClass, 2};
    run.training = std::make_unique<ExampleTraining>(
        two_of({1, 0}), target,
        EpochOrderOptions{.batch_size = 1, .accumulate = 2, .seed = run.settings.recipe.seed});
    run.validation.emplace(two_of({1, 0}), target, 2);
    run.settings.recipe.accumulate = 2;
  }
};

TEST(ClassifierObjective, LossOfAnUpdateIsTheWeightedMean) {
  TwoTexts two;
  two.run.class_weights = {1, 3};
  const Classifier model(two.config, 1);
  ClassifierObjective objective(Context(1), model, two.run);
  EXPECT_EQ(objective.begin_update(0), 2);
  const double loss = objective.forward(0) + objective.forward(1);
  EXPECT_EQ(objective.hits().of, 1);
  EXPECT_NEAR(loss, objective.validate({}).value().loss, 1e-6);
  EXPECT_FALSE(objective.validate([] { return true; }).has_value());
}

TEST(ClassifierObjective, LabelSmoothingIsThatOfTrainingAlone) {
  TwoTexts two;
  const Classifier model(two.config, 1);
  const auto loss_with = [&](double smoothing, std::vector<std::int32_t> labels) {
    two.run.settings.text.label_smoothing = smoothing;
    two.run.training = std::make_unique<ExampleTraining>(
        two_of(std::move(labels)), TargetShape{TargetKind::kClass, 2},
        EpochOrderOptions{.batch_size = 1, .accumulate = 2, .seed = 1});
    ClassifierObjective objective(Context(1), model, two.run);
    objective.begin_update(0);
    return objective.forward(0) + objective.forward(1);
  };
  // A target of which e is shared by both classes is 1 - e / 2 the label and e / 2 the other one.
  const double right = loss_with(0, {1, 0}), wrong = loss_with(0, {0, 1});
  ASSERT_GT(std::abs(right - wrong), 1e-4);
  EXPECT_NEAR(loss_with(.2, {1, 0}), .9 * right + .1 * wrong, 1e-6);
  ClassifierObjective objective(Context(1), model, two.run);
  EXPECT_NEAR(objective.validate({}).value().loss, right, 1e-6);
}

}  // namespace
}  // namespace fovea
