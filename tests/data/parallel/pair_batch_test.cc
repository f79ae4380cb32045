// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/parallel/pair_batch.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

// Pair i has i % 4 + 2 source tokens with its end, and i % 3 + 2 predicted ones; tokens are 100 i
// and so on.
PairTokens some_pairs(index count) {
  PairTokens all;
  for (index i = 0; i < count; ++i) {
    for (token n = 0; n < 2 + i % 4; ++n) all.source.push_back(100 * static_cast<token>(i) + n);
    for (token n = 0; n < 3 + i % 3; ++n)
      all.target.push_back(100 * static_cast<token>(i) + 50 + n);
    all.source_starts.push_back(static_cast<index>(all.source.size()));
    all.target_starts.push_back(static_cast<index>(all.target.size()));
  }
  return all;
}

TEST(PairTokens, APairHasMarksAndMustFit) {
  const auto tokenizer = make_byte_tokenizer({.kind = "byte"});
  PairTokens all;
  const PairTokenizers both{*tokenizer, *tokenizer};
  EXPECT_EQ(append(all, both, "ab", "c", 4), PairFit::kTaken);
  EXPECT_EQ(append(all, both, "abcd", "c", 4), PairFit::kTooLong);
  EXPECT_EQ(append(all, both, "a", "abcd", 4), PairFit::kTooLong);
  EXPECT_EQ(append(all, both, "", "a", 4), PairFit::kEmpty);
  EXPECT_EQ(append(all, both, "a", " \t", 4), PairFit::kEmpty);
  EXPECT_EQ(append(all, both, "abc", "abc", 4), PairFit::kTaken);
  ASSERT_EQ(all.size(), 2);
  EXPECT_THAT(std::vector<token>(all.source.begin(), all.source.begin() + 3),
              ElementsAre(byte_token('a'), byte_token('b'), kEndToken));
  EXPECT_THAT(std::vector<token>(all.target.begin(), all.target.begin() + 3),
              ElementsAre(kBeginToken, byte_token('c'), kEndToken));
  EXPECT_EQ(all.source_length(1), 4);
  EXPECT_EQ(all.target_length(1), 4);
  EXPECT_EQ(all.target_count(), 6);
}

TEST(PairBatch, TargetsAreWhatFollows) {
  PairBatch batch;
  append(batch, some_pairs(3), 2);
  append(batch, some_pairs(3), 0);
  EXPECT_THAT(batch.source, ElementsAre(200, 201, 202, 203, 0, 1));
  EXPECT_THAT(batch.target, ElementsAre(250, 251, 252, 253, 50, 51));
  EXPECT_THAT(batch.targets, ElementsAre(251, 252, 253, 254, 51, 52));
  EXPECT_THAT(batch.source_offsets, ElementsAre(0, 4, 6));
  EXPECT_THAT(batch.target_offsets, ElementsAre(0, 4, 6));
  EXPECT_THAT(batch.samples, ElementsAre(2, 0));
  EXPECT_THROWS(append(batch, some_pairs(3), 3), kShape, "no pair 3 of 3");
}

// The dropped tokens of a pair do not depend on its batch, change with the update, and are no
// marks.
TEST(PairBatch, TokensAreDropped) {
  const auto batches = [](index batch_tokens, index epoch) {
    PairTraining training(some_pairs(60),
                          {.probability = 0.3, .source = -7, .target = -8, .seed = 5}, batch_tokens,
                          1, 1);
    std::map<std::uint64_t, std::vector<token>> read;
    index dropped = 0;
    const PairBatch batch = training.batch(epoch * training.updates_per_epoch(), 0);
    for (std::size_t s = 0; s < batch.samples.size(); ++s) {
      const auto from = batch.source.begin() + batch.source_offsets[s],
                 to = batch.source.begin() + batch.source_offsets[s + 1];
      EXPECT_NE(*(to - 1), -7);
      EXPECT_NE(batch.target[static_cast<std::size_t>(batch.target_offsets[s])], -8);
      dropped += std::count(from, to, -7);
      read[batch.samples[s]] = {from, to};
    }
    EXPECT_EQ(std::count(batch.targets.begin(), batch.targets.end(), -8), 0);
    EXPECT_GT(dropped, 0);
    return read;
  };
  const auto all = batches(100000, 0), again = batches(100000, 1), part = batches(80, 0);
  EXPECT_NE(all, again);
  for (const auto& [pair, tokens] : part) EXPECT_EQ(all.at(pair), tokens);
}

TEST(PairBatch, NoBatchIsLargerThanWasSaid) {
  PairTraining training(some_pairs(200), {}, 40, 2, 1);
  for (index u = 0; u < 2 * training.updates_per_epoch(); ++u) {
    for (index b = 0; b < 2; ++b) {
      const PairBatch batch = training.batch(u, b);
      EXPECT_LE(batch.target_count(), training.largest_target());
      EXPECT_LE(static_cast<index>(batch.source.size()), training.largest_source());
    }
  }
}

TEST(PairBatch, AnEvaluationSeesEveryPairOnce) {
  const PairEvaluation all(some_pairs(50), 12);
  std::vector<std::uint64_t> seen;
  for (index i = 0; i < all.size(); ++i) {
    const PairBatch batch = all[i];
    EXPECT_LE(batch.target_count(), all.largest_target());
    EXPECT_LE(static_cast<index>(batch.source.size()), all.largest_source());
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
  }
  EXPECT_LE(all.largest_target(), 12);
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(seen[i], i);
  const PairEvaluation one(some_pairs(3), 1);
  EXPECT_EQ(one.size(), 3);
}

}  // namespace
}  // namespace fovea
