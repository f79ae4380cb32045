// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "fovea/task/classify/evaluate.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int32_t kTruth[] = {0, 0, 1, 1};
constexpr std::int32_t kChosen[] = {0, 1, 1, 1};

ClassifierScore some_score() {
  ClassifierScore score{.labels = {"好评", "差评"}, .examples = 4};
  score.confusion = confusion_matrix({kTruth, 4}, {kChosen, 4}, 2);
  score.classes = classification_intervals(Context(1), *score.confusion, {.resamples = 10});
  constexpr float confidences[] = {0.9f, 0.8f, 0.7f, 0.6f};
  constexpr std::uint8_t right[] = {1, 0, 1, 1};
  score.reliability =
      reliability(Vec<const float>{confidences, 4}, Vec<const std::uint8_t>{right, 4});
  return score;
}

TEST(ClassifierScore, IsAnObject) {
  ClassifierScore score = some_score();
  score.mistakes.push_back({.file = "t.tsv",
                            .line = 3,
                            .text = "a\nb",
                            .truth = {"好评"},
                            .predicted = {"差评"},
                            .truth_probability = 0.25,
                            .probability = 0.75,
                            .loss = 1.5});
  const Json json = json_of_score(score);
  EXPECT_EQ(json.at("task").text(), "single-label");
  EXPECT_EQ(json.at("examples").whole(), 4);
  EXPECT_EQ(json.at("accuracy").at("value").number(), 0.75);
  EXPECT_LE(json.at("accuracy").at("low").number(), 0.75);
  EXPECT_EQ(json.at("labels").array()[1].at("predicted").whole(), 3);
  EXPECT_EQ(json.at("labels").array()[1].at("recall").at("value").number(), 1);
  EXPECT_EQ(json.at("confusion").line(), "[[1,1],[0,2]]");
  EXPECT_EQ(json.at("reliability").at("bins").array().size(), 15U);
  EXPECT_EQ(json.at("mistakes").line(),
            R"([{"file":"t.tsv","line":3,"text":"a\nb","loss":1.5,"label":"好评",)"
            R"("predicted":"差评","label_probability":0.25,"probability":0.75}])");
  EXPECT_EQ(json.find("threshold"), nullptr);
}

TEST(ClassifierScore, HasItsPictures) {
  const std::vector<ScorePicture> pictures = pictures_of(some_score());
  ASSERT_EQ(pictures.size(), 2U);
  EXPECT_EQ(pictures[0].name, "confusion.svg");
  EXPECT_THAT(pictures[0].svg, HasSubstr("好评"));
  EXPECT_EQ(pictures[1].name, "reliability.svg");
  EXPECT_THAT(pictures[1].svg, HasSubstr("4 texts, 2 classes"));
  EXPECT_THAT(pictures_of({.task = ClassifierTask::kRegression}), IsEmpty());
}

TEST(ClassifierScore, NamesEveryNumberOnce) {
  std::vector<std::string> names;
  some_score().visit_numbers(
      [&](std::string_view name, const Interval&) { names.emplace_back(name); });
  EXPECT_THAT(names, ElementsAre("accuracy", "macro_precision", "macro_recall", "macro_f1",
                                 "weighted_precision", "weighted_recall", "weighted_f1",
                                 "micro_precision", "micro_recall", "micro_f1"));
}

TEST(ClassifierScore, AMatrixOfManyClassesIsLeftOut) {
  ClassifierScore score = some_score();
  score.confusion = ConfusionMatrix{.classes = 201, .counts = std::vector<index>(201 * 201, 0)};
  EXPECT_EQ(json_of_score(score).find("confusion"), nullptr);
  EXPECT_EQ(pictures_of(score).size(), 1U);
}

}  // namespace
}  // namespace fovea
