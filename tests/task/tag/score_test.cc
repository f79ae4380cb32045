// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/task/tag/evaluate.h"

namespace fovea {
namespace {

TEST(TaggerScore, JsonHasWhatThereIs) {
  const std::vector<SentenceSpans> sentences = {
      {.truth = {{0, 1, 0}}, .predicted = {{0, 1, 0}}, .tokens = 3, .right_tokens = 2}};
  TaggerScore score{.sentences = 1, .words = 3, .unknown_tags = 1, .types = {"x"}};
  score.spans = span_intervals(Context(1), sentences, 1);
  const Json plain = json_of_scores({&score, 1});
  EXPECT_EQ(plain.at("words").whole(), 3);
  EXPECT_NEAR(plain.at("accuracy").at("value").number(), 2.0 / 3, 1e-12);
  EXPECT_EQ(plain.find("types"), nullptr);
  EXPECT_EQ(plain.find("micro_f1"), nullptr);
  score.has_spans = true;
  score.confusion = type_confusion(sentences, 1);
  score.mistakes.push_back(
      {.file = "f", .line = 2, .words = {"a"}, .truth = {"O"}, .predicted = {"B-x"}, .wrong = 1});
  const Json json = json_of_scores({&score, 1});
  EXPECT_EQ(json.at("micro_f1").at("value").number(), 1);
  EXPECT_EQ(json.at("types").array()[0].at("type").text(), "x");
  EXPECT_EQ(json.at("types").array()[0].at("right").whole(), 1);
  EXPECT_EQ(json.at("confusion").array()[0].array()[0].whole(), 1);
  EXPECT_EQ(json.at("mistakes").array()[0].at("predicted").array()[0].text(), "B-x");
}

TEST(TaggerScore, ASegmenterCountsCharacters) {
  const std::vector<SegmentedSentence> sentences = {{.truth = {1, 3}, .predicted = {1, 2, 3}}};
  TaggerScore score{.task = TagTask::kSegment, .sentences = 1, .words = 3};
  score.segmentation = segmentation_intervals(Context(1), sentences);
  const Json json = json_of_scores({&score, 1});
  EXPECT_EQ(json.at("characters").whole(), 3);
  EXPECT_EQ(json.at("recall").at("value").number(), .5);
}

}  // namespace
}  // namespace fovea
