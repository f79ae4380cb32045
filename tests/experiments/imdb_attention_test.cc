// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "experiments/imdb_text.h"
#include "tests/report/xml.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;

Reviews reviews() {
  std::string right;
  for (int i = 0; i < 35; ++i) right += i % 2 == 0 ? "good " : "film ";
  return {.texts = {"bad film", right, "good"}, .labels = {0, 1, 1}};
}

TEST(ImdbAttention, ChoosesAReviewThatCanBeReadBelowAPicture) {
  const Reviews all = reviews();
  const ShownReview review = choose_review(all, KerasVocabulary(all.texts, 100));
  ASSERT_EQ(review.words.size(), 36u);
  ASSERT_EQ(review.ids.size(), 36u);
  EXPECT_EQ(review.ids[0], kKerasStart);
  EXPECT_EQ(review.words[0], "(start)");
  EXPECT_EQ(review.words[1], "good");
  // Without such a review the first is taken.
  const Reviews few{.texts = {"bad film", "good"}, .labels = {0, 1}};
  EXPECT_EQ(choose_review(few, KerasVocabulary(few.texts, 100)).words.size(), 3u);
  EXPECT_THROWS(choose_review({}, KerasVocabulary(few.texts, 100)), kShape, "none to show");
}

TEST(ImdbAttention, TheWindowIsWhatTheModelReads) {
  const ShownReview review{.ids = {1, 7, 8}, .words = {"(start)", "good", "film"}};
  const ShownReview padded = window_of(review, 5, true);
  EXPECT_THAT(padded.ids, testing::ElementsAre(kKerasPad, kKerasPad, 1, 7, 8));
  EXPECT_EQ(padded.padding, 2);
  EXPECT_EQ(padded.words, review.words);
  const ShownReview cut = window_of(review, 2, true);
  EXPECT_THAT(cut.ids, testing::ElementsAre(7, 8));
  EXPECT_THAT(cut.words, testing::ElementsAre("good", "film"));
  EXPECT_EQ(window_of(review, 5, false).padding, 0);
}

// Weights of a query sum to 1, so those of the words of a head do.
TEST(ImdbAttention, DrawsTheMeanWeightsOfEachHead) {
  const Reviews all = reviews();
  const KerasVocabulary vocabulary(all.texts, 100);
  ShownReview review = choose_review(all, vocabulary);
  review.ids.resize(2);
  review.words = {"(start)", "<good>"};
  ClassifierConfig config;
  config.task = ClassifierTask::kBinary;
  config.classes = 2;
  config.encoder = "attention:heads=2:plain:no-output";
  config.width = 64;
  config.heads = 4;  // not those of the layer
  config.init = InitScheme::kSource;
  config.vocabulary = 100;
  const Classifier model(config, 1);
  const std::string svg = draw_review_attention(Context(2), model, review, "E1");
  EXPECT_EQ(xml_error(svg), "");
  double weights[2][2];
  const char* const names[2] = {"(start)", "&lt;good&gt;"};
  for (int head = 0; head < 2; ++head) {
    for (int word = 0; word < 2; ++word) {
      const std::string cell =
          "<title>head " + std::to_string(head + 1) + ", " + names[word] + ": ";
      const std::size_t at = svg.find(cell);
      ASSERT_NE(at, svg.npos) << cell;
      weights[head][word] = std::stod(svg.substr(at + cell.size()));
    }
    EXPECT_NEAR(weights[head][0] + weights[head][1], 1, 1e-3);
  }
  EXPECT_NE(weights[0][0], weights[1][0]) << "heads look at different words";
}

}  // namespace
}  // namespace fovea
