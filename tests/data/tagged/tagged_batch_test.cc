// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/tagged_batch.h"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

// Sentence i has i % 4 + 1 words; word w of all has w % 3 characters and the id 10 + w.
TaggedWords some_words(index sentences) {
  TaggedWords all;
  all.tags.resize(2);
  for (index i = 0; i < sentences; ++i) {
    for (index w = 0; w <= i % 4; ++w) {
      const auto n = static_cast<std::int32_t>(all.words.size());
      all.words.push_back(10 + n);
      all.shapes.push_back(n % 5);
      all.tags[0].push_back(n % 7);
      all.tags[1].push_back(n % 2);
      for (std::int32_t c = 0; c < n % 3; ++c) all.characters.push_back(100 * n + c);
      all.character_starts.push_back(static_cast<index>(all.characters.size()));
    }
    all.starts.push_back(all.word_count());
  }
  return all;
}

TEST(TaggedBatch, HoldsSentencesSideBySide) {
  const TaggedWords all = some_words(4);
  TaggedBatch batch;
  append(batch, all, 2);
  append(batch, all, 1);
  EXPECT_THAT(batch.words, ElementsAre(13, 14, 15, 11, 12));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 3, 5));
  EXPECT_THAT(batch.samples, ElementsAre(2, 1));
  EXPECT_THAT(batch.character_offsets, ElementsAre(0, 0, 1, 3, 4, 6));
  EXPECT_THAT(batch.characters, ElementsAre(400, 500, 501, 100, 200, 201));
  EXPECT_THAT(batch.tags, ElementsAre(ElementsAre(3, 4, 5, 1, 2), ElementsAre(1, 0, 1, 1, 0)));
  EXPECT_THROWS(append(batch, all, 4), kShape, "no sentence 4 of 4");
  EXPECT_EQ(all.largest(2), 7);
  EXPECT_EQ(all.most_characters(1), 3);
}

TEST(TaggedBatch, OfLongWordsBothEndsAreRead) {
  std::vector<token> characters(300);
  std::iota(characters.begin(), characters.end(), 0);
  cut_middle(characters, 44);  // 256 are left
  EXPECT_EQ(characters.size(), 300u);
  cut_middle(characters, 10);
  ASSERT_EQ(characters.size(), 266u);
  EXPECT_EQ(characters[10 + 127], 10 + 127);
  EXPECT_EQ(characters[10 + 128], 300 - 128);
  EXPECT_EQ(characters.back(), 299);
}

TEST(TaggedBatch, TrainingSeesEverySentenceOnceAnEpoch) {
  TaggedTraining training(some_words(10), {}, {.batch_size = 3, .seed = 1});
  EXPECT_EQ(training.updates_per_epoch(), 4);
  std::vector<std::uint64_t> seen;
  for (index update = 0; update < 4; ++update) {
    const TaggedBatch batch = training.batch(update, 0);
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// The dropped words of a sentence do not depend on its batch, and change with the update.
TEST(TaggedBatch, RareWordsAreReadAsUnknown) {
  const TaggedWords all = some_words(40);
  WordDropout dropout{
      .probability = 0.5, .is_rare = std::vector<bool>(200, true), .unknown = 1, .seed = 3};
  dropout.is_rare[10] = false;
  const EpochOrderOptions whole{.batch_size = 40, .seed = 1};
  TaggedTraining training(all, dropout, whole), again(all, dropout, whole);
  const TaggedBatch first = training.batch(0, 0), second = training.batch(1, 0);
  EXPECT_EQ(first.words, again.batch(0, 0).words);
  EXPECT_NE(first.words, second.words);
  const auto unknown = std::count(first.words.begin(), first.words.end(), 1);
  EXPECT_GT(unknown, 30);
  EXPECT_LT(unknown, 70);
  EXPECT_NE(std::find(first.words.begin(), first.words.end(), 10), first.words.end());
  dropout.probability = 0;
  TaggedTraining none(all, dropout, whole);
  const TaggedBatch kept = none.batch(0, 0);
  EXPECT_EQ(std::count(kept.words.begin(), kept.words.end(), 1), 0);
}

TEST(TaggedBatch, EvaluationKeepsSentencesWithoutSomeTagApart) {
  TaggedWords all = some_words(9);
  all.tags[1][0] = kNoTag;  // in one of the columns
  const TaggedEvaluation set(all, 3);
  ASSERT_EQ(set.size(), 4);
  std::vector<std::uint64_t> seen;
  for (index i = 0; i < set.size(); ++i) {
    const TaggedBatch batch = set[i];
    EXPECT_EQ(batch.lacks_tag(), i == 3);
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
  }
  EXPECT_THAT(seen, ElementsAre(3, 7, 2, 6, 1, 5, 4, 8, 0));
}

}  // namespace
}  // namespace fovea
