// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/tag_predictor.h"

#include <gtest/gtest.h>

#include <limits>

#include "fovea/task/tag/tagger.h"
#include "tests/support/throws.h"
#include "tests/task/tag/untrained_tagger.h"

namespace fovea {
namespace {

std::vector<std::vector<std::string>> some_sentences(int count) {
  std::vector<std::vector<std::string>> sentences(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w < i * 7 % 19; ++w) {
      sentences[static_cast<std::size_t>(i)].push_back(w % 3 == 0 ? "ada" : std::to_string(i * w));
    }
  }
  return sentences;
}

class EveryTaggerEncoder : public testing::TestWithParam<const char*> {};

TEST_P(EveryTaggerEncoder, HasTheSameBitsInAnyBatchOnAnyThreads) {
  const LoadedTagger model = untrained_tagger(GetParam());
  const auto sentences = some_sentences(100);
  std::vector<std::vector<TaggedByModel>> alone;
  TagPredictor one(Context(1), model, 1);
  for (const auto& sentence : sentences) {
    alone.push_back(one.tag({&sentence, 1}, TagProbabilities::kYes)[0]);
  }
  for (const int threads : {1, 2, 3, 8}) {
    for (const index words : {30, 2048}) {
      TagPredictor predictor(Context(threads), model, words);
      const auto found = predictor.tag(sentences, TagProbabilities::kYes);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i][0].tags, alone[i][0].tags);
        EXPECT_EQ(found[i][0].probabilities, alone[i][0].probabilities);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Encoders, EveryTaggerEncoder,
                         testing::Values("", "bilstm:8", "conv3,attention", "transformer"));

TEST(TagPredictor, LongSentencesAreReadInPieces) {
  const LoadedTagger model = untrained_tagger("bilstm:8");  // of at most 20 words
  const std::vector<std::string> longer(45, "ada"), first(20, "ada");
  TagPredictor predictor(Context(2), model);
  const auto found = predictor.tag({&longer, 1});
  EXPECT_EQ(found[0][0].tags.size(), 45u);
  EXPECT_TRUE(found[0][0].probabilities.empty());
  const auto piece = predictor.tag({&first, 1});
  EXPECT_TRUE(
      std::equal(piece[0][0].tags.begin(), piece[0][0].tags.end(), found[0][0].tags.begin()));
  EXPECT_EQ(predictor.cut(), 1);
  EXPECT_EQ(predictor.words(), 65);
}

TEST(TagPredictor, SaysATagOfEachColumn) {
  const LoadedTagger model = untrained_two_columns("attention");
  const auto sentences = some_sentences(30);
  TagPredictor predictor(Context(1), model), threads(Context(3), model, 30);
  const auto found = predictor.tag(sentences, TagProbabilities::kYes);
  const auto same = threads.tag(sentences, TagProbabilities::kYes);
  bool differ = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), 2u);
    for (std::size_t c = 0; c < 2; ++c) {
      EXPECT_EQ(found[i][c].tags.size(), sentences[i].size());
      EXPECT_EQ(found[i][c].probabilities.size(), (c == 0 ? 3 : 2) * sentences[i].size());
      EXPECT_EQ(found[i][c].tags, same[i][c].tags);
      EXPECT_EQ(found[i][c].probabilities, same[i][c].probabilities);
    }
    differ |= found[i][0].tags != found[i][1].tags;
  }
  EXPECT_TRUE(differ);
}

TEST(TagPredictor, LongWordsAreReadFromBothEnds) {
  const LoadedTagger model = untrained_tagger("");
  const std::string end(128, 'd');
  const std::vector<std::vector<std::string>> sentences = {
      {std::string(128, 's') + end}, {std::string(100000, 's') + end}, {std::string(257, 'a')}};
  TaggedWords read;
  for (const auto& sentence : sentences) append(read, model.vocabulary, sentence);
  EXPECT_EQ(read.character_starts, (std::vector<index>{0, 256, 512, 768}));
  TagPredictor predictor(Context(1), model);
  const auto found = predictor.tag(sentences, TagProbabilities::kYes);
  EXPECT_EQ(found[0][0].probabilities, found[1][0].probabilities);
  EXPECT_NE(found[0][0].probabilities, found[2][0].probabilities);
}

TEST(TagPredictor, AModelOfNoNumbersIsAnError) {
  const LoadedTagger model = untrained_tagger("");
  Parameter* const bias = model.model->parameters()[8];
  ASSERT_EQ(bias->name, "output.bias");
  bias->value.vec<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  ++bias->version;
  const std::vector<std::string> sentence = {"ada"};
  TagPredictor predictor(Context(1), model);
  EXPECT_THROWS(predictor.tag({&sentence, 1}), kModelDamaged, "not finite");
}

}  // namespace
}  // namespace fovea
