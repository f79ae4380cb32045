// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/classify/text_predictor.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Task = ClassifierTask;

const std::vector<std::string> kLabels = {"a", "好", "tab\there"};
constexpr float kValues[] = {0.25f, 0.5f, 0.75f};
const Vec<const float> kThree{kValues, 3};

TEST(PredictionLine, TheLikeliestClassesAreTold) {
  EXPECT_THAT(chosen_labels({.task = Task::kSingleLabel}, kThree, {}), ElementsAre(2));
  EXPECT_THAT(chosen_labels({.task = Task::kSingleLabel}, kThree, {.top = 2}), ElementsAre(2, 1));
  EXPECT_THAT(chosen_labels({.task = Task::kBinary}, kThree, {.top = 9}), ElementsAre(2, 1, 0));
}

TEST(PredictionLine, OfEqualOnesTheFirstIsTold) {
  constexpr float equal[] = {0.1f, 0.45f, 0.45f};
  EXPECT_THAT(chosen_labels({.task = Task::kSingleLabel}, {equal, 3}, {}), ElementsAre(1));
  EXPECT_THAT(chosen_labels({.task = Task::kSingleLabel}, {equal, 3}, {.top = 3}),
              ElementsAre(1, 2, 0));
}

TEST(PredictionLine, OfSeveralLabelsThoseAboveTheThreshold) {
  EXPECT_THAT(chosen_labels({.task = Task::kMultiLabel}, kThree, {}), ElementsAre(2, 1));
  EXPECT_THAT(chosen_labels({.task = Task::kMultiLabel}, kThree, {.threshold = 0.8}), IsEmpty());
  EXPECT_THAT(chosen_labels({.task = Task::kMultiLabel}, kThree, {.top = 1, .threshold = 0.8}),
              ElementsAre(2));
}

TEST(PredictionLine, IsOneLine) {
  EXPECT_EQ(prediction_text({Task::kSingleLabel, kLabels}, kThree, {}), "tab\\there\t0.75");
  EXPECT_EQ(prediction_text({Task::kMultiLabel, kLabels}, kThree, {}), "tab\\there\t0.75\t好\t0.5");
  EXPECT_EQ(prediction_text({Task::kMultiLabel, kLabels}, kThree, {.threshold = 1}), "");
  EXPECT_EQ(prediction_text({Task::kRegression}, kThree, {}), "0.25\t0.5\t0.75");
}

TEST(PredictionLine, NumbersReadBackToTheSameBits) {
  constexpr float third[] = {1.0f / 3};
  EXPECT_EQ(std::stof(prediction_text({Task::kRegression}, {third, 1}, {})), third[0]);
}

TEST(PredictionLine, IsAnObject) {
  EXPECT_EQ(
      prediction_json({Task::kSingleLabel, kLabels}, kThree, {.top = 2}),
      R"({"label":"tab\there","probability":0.75,"probabilities":{"tab\there":0.75,"好":0.5}})");
  EXPECT_EQ(prediction_json({Task::kMultiLabel, kLabels}, kThree, {.threshold = 0.6}),
            R"({"labels":["tab\there"],"probabilities":{"tab\there":0.75}})");
  EXPECT_EQ(prediction_json({Task::kRegression}, {kValues, 1}, {}), R"({"value":0.25})");
  EXPECT_EQ(prediction_json({Task::kRegression}, {kValues, 2}, {}), R"({"values":[0.25,0.5]})");
}

TEST(PredictionLine, OptionsAreChecked) {
  EXPECT_THROWS(check_options(PredictionChoice{.top = -1}), kOptionValue, "--top: -1");
  EXPECT_THROWS(check_options(PredictionChoice{.threshold = 1.5}), kOptionValue,
                "--threshold: 1.5");
}

}  // namespace
}  // namespace fovea
