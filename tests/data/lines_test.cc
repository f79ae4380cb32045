// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "fovea/data/batcher.h"
#include "tests/data/support.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(Lines, AreSequencesFromBeginToEnd) {
  const Sequences s = cut_lines("ab\n\n\r\nc\r\nd", bytes(), 8, "t");
  const token a = byte_token('a'), b = byte_token('b'), c = byte_token('c'), d = byte_token('d');
  EXPECT_THAT(s.stream, ElementsAre(kBeginToken, a, b, kEndToken, kBeginToken, c, byte_token('\r'),
                                    kEndToken, kBeginToken, d, kEndToken));
  const Batch batch = EvaluationBatches(s, 9)[0];
  EXPECT_THAT(batch.offsets, ElementsAre(0, 3, 6, 8));
  EXPECT_THAT(batch.targets,
              ElementsAre(a, b, kEndToken, c, byte_token('\r'), kEndToken, d, kEndToken));
  // "ab\n", "c\r\n", "d" and the newline that the last line lacks.
  EXPECT_EQ(bytes_predicted(batch, bytes().bytes_predicted()), 3 + 3 + 2);
}

TEST(Lines, ThatAreTooLongAreCutIntoPieces) {
  for (const index length : {1, 3, 4, 5, 7, 8, 40}) {
    const std::string line = letters(length);
    const EvaluationBatches batches(cut_lines(line + "\n", bytes(), 4, "t"), 2);
    std::vector<token> predicted;
    for (index i = 0; i < batches.size(); ++i) {
      const Batch batch = batches[i];
      expect_sound(batch, {.block = 4, .batch_size = 2});
      predicted.insert(predicted.end(), batch.targets.begin(), batch.targets.end());
    }
    EXPECT_EQ(batches[0].ids[0], kBeginToken);
    EXPECT_EQ(bytes().decode(predicted), line);
    EXPECT_EQ(predicted.back(), kEndToken);
    EXPECT_EQ(std::count(predicted.begin(), predicted.end(), kEndToken), 1);
  }
}

TEST(Lines, AnEpochHoldsEverySequenceOnceInItsOwnOrder) {
  const std::string text = verses(1000);
  const auto all = cut_lines(text, bytes(), 64, "t");
  const BatchOptions options{.block = 64, .batch_size = 3, .accumulate = 2, .seed = 9};
  const auto batches = shuffled_lines(text, bytes(), options);
  const auto sequences = static_cast<index>(all.slices.size());
  EXPECT_EQ(batches->updates_per_epoch(), (sequences + 5) / 6);
  std::vector<std::vector<std::uint64_t>> orders;
  for (index epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::uint64_t>& order = orders.emplace_back();
    index targets = 0;
    for (index k = 0; k < batches->updates_per_epoch(); ++k) {
      for (index step = 0; step < 2; ++step) {
        const Batch batch = batches->batch(epoch * batches->updates_per_epoch() + k, step);
        order.insert(order.end(), batch.samples.begin(), batch.samples.end());
        targets += batch.tokens();
        for (index s = 0; s < batch.sequences(); ++s) {
          const auto i = static_cast<std::size_t>(s);
          const Slice slice = all.slices[batch.samples[i]];
          ASSERT_EQ(batch.offsets[i + 1] - batch.offsets[i], slice.targets);
          ASSERT_EQ(batch.ids[static_cast<std::size_t>(batch.offsets[i])],
                    all.stream[static_cast<std::size_t>(slice.start)]);
        }
      }
    }
    EXPECT_EQ(targets, all.target_count());
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), all.slices.size());
    EXPECT_EQ(order.size(), all.slices.size());
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST(Lines, OfAnUpdateHaveNearlyEqualLengths) {
  const auto batches = shuffled_lines(verses(3000), bytes(), {.block = 128, .batch_size = 16});
  index first_updates = 0;
  index most_spread = 0;
  const index updates = batches->updates_per_epoch();
  for (index update = 0; update < updates; ++update) {
    const Batch batch = batches->batch(update, 0);
    index shortest = longest(batch);
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      shortest = std::min<index>(shortest, batch.offsets[s + 1] - batch.offsets[s]);
    }
    most_spread = std::max(most_spread, longest(batch) - shortest);
    if (update < 32) first_updates += batch.tokens();
  }
  // 90 lengths over 64 updates of 16: an update spans one or two, more where the last window is
  // small.
  EXPECT_LE(most_spread, 6);
  // The updates are shuffled: unshuffled, these would be the shorter half of a window, and hold
  // half as much as others.
  const double mean =
      static_cast<double>(cut_lines(verses(3000), bytes(), 128, "t").target_count()) /
      static_cast<double>(updates);
  EXPECT_NEAR(static_cast<double>(first_updates) / (32 * mean), 1, 0.3);
}

TEST(Lines, MeetOthersInEachEpoch) {
  const auto batches = shuffled_lines(verses(3000), bytes(), {.block = 128, .batch_size = 16});
  const index updates = batches->updates_per_epoch();
  std::set<std::vector<std::uint64_t>> groups;
  for (index update = 0; update < 2 * updates; ++update) {
    std::vector<std::uint64_t> group = batches->batch(update, 0).samples;
    std::sort(group.begin(), group.end());
    groups.insert(group);
  }
  EXPECT_EQ(static_cast<index>(groups.size()), 2 * updates);
}

TEST(Lines, NeedOneThatIsNotEmpty) {
  expect_error(ErrorCode::kInputTooSmall, "the training text is too small: it has 0 lines",
               [] { shuffled_lines("\n\n\r\n", bytes(), {.block = 8, .batch_size = 4}); });
  const auto one = shuffled_lines("x", bytes(), {.block = 8, .batch_size = 4, .accumulate = 2});
  EXPECT_EQ(one->updates_per_epoch(), 1);
  EXPECT_EQ(one->batch(5, 0).sequences(), 1);
  EXPECT_EQ(one->batch(5, 1).sequences(), 0);
  EXPECT_EQ(one->largest_batch(), 2);
}

TEST(Lines, NameThePlaceOfInvalidUtf8) {
  const auto characters = make_tokenizer({.kind = "char", .characters = {U'a'}});
  expect_error(ErrorCode::kEncoding, "test text, line 3:1:2: invalid UTF-8",
               [&] { cut_lines("a\n\na\xFF\n", *characters, 8, "test text"); });
}

}  // namespace
}  // namespace fovea
