// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "fovea/data/batcher.h"
#include "tests/data/support.h"

namespace fovea {
namespace {

using testing::HasSubstr;

TEST(Blocks, StartAnywhereEquallyOften) {
  const std::string text = letters(20);
  const auto batches = random_blocks(text, bytes(), {.block = 17, .batch_size = 10});
  std::map<std::vector<token>, int> starts;
  for (index update = 0; update < 600; ++update) {
    const Batch batch = batches->batch(update, 0);
    ASSERT_EQ(batch.tokens(), 170);
    for (index s = 0; s < 10; ++s) {
      std::vector<token> block(batch.ids.begin() + 17 * s, batch.ids.begin() + 17 * (s + 1));
      block.push_back(batch.targets[static_cast<std::size_t>(17 * s + 16)]);
      ++starts[block];
    }
  }
  // 20 tokens, blocks that read 18: three starts, 2000 times each, deviation 36.5.
  ASSERT_EQ(starts.size(), 3u);
  for (const auto& [block, count] : starts) {
    EXPECT_NEAR(count, 2000, 200);
    EXPECT_THAT(text, HasSubstr(bytes().decode(block)));
  }
}

TEST(Blocks, TrainOnAsMuchAsThereIsInAnEpoch) {
  EXPECT_EQ(
      random_blocks(letters(1000), bytes(), {.block = 10, .batch_size = 5})->updates_per_epoch(),
      20);
  EXPECT_EQ(
      random_blocks(letters(1001), bytes(), {.block = 10, .batch_size = 5})->updates_per_epoch(),
      21);
  const auto accumulated =
      random_blocks(letters(1001), bytes(), {.block = 10, .batch_size = 5, .accumulate = 3});
  EXPECT_EQ(accumulated->updates_per_epoch(), 7);
  EXPECT_EQ(accumulated->largest_batch(), 50);
}

TEST(Blocks, NeedOneTokenMoreThanABlock) {
  EXPECT_NO_THROW(random_blocks(letters(9), bytes(), {.block = 8, .batch_size = 2})->batch(0, 0));
  expect_error(ErrorCode::kInputTooSmall, "it has 8 tokens, and at least 9 are needed",
               [] { random_blocks(letters(8), bytes(), {.block = 8, .batch_size = 2}); });
  expect_error(ErrorCode::kInputTooSmall, "it has 0 tokens",
               [] { random_blocks("", bytes(), {.block = 8, .batch_size = 2}); });
}

TEST(Blocks, EvaluationPredictsEveryTokenButTheFirstOnce) {
  for (const index tokens : {2, 9, 16, 17, 18, 100}) {
    const std::string text = letters(tokens);
    const EvaluationBatches batches(cut_blocks(text, bytes(), {.block = 8}, "validation text"), 3);
    std::string predicted;
    for (index i = 0; i < batches.size(); ++i) {
      expect_sound(batches[i], {.block = 8, .batch_size = 3});
      predicted += bytes().decode(batches[i].targets);
    }
    EXPECT_EQ(predicted, text.substr(1));
  }
  expect_error(ErrorCode::kInputTooSmall, "validation text is too small: it has 1 tokens",
               [] { cut_blocks("a", bytes(), {.block = 8}, "validation text"); });
}

}  // namespace
}  // namespace fovea
