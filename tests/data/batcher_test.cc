// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batcher.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "fovea/base/error.h"
#include "fovea/base/random.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Tokenizer& bytes() {
  static const auto tokenizer = make_tokenizer({.kind = "byte", .characters = {}});
  return *tokenizer;
}

std::string letters(index n) {
  std::string text;
  for (index i = 0; i < n; ++i) text += static_cast<char>('a' + i * i % 26);
  return text;
}

std::string verses(index n) {
  Random random(4, RandomUse::kTest);
  std::string text;
  for (index i = 0; i < n; ++i) text += letters(random.below(90)) + '\n';
  return text;
}

void expect_error(ErrorCode code, std::string_view message, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "expected an error: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

bool same(const Batch& a, const Batch& b) {
  return a.ids == b.ids && a.targets == b.targets && a.offsets == b.offsets &&
         a.samples == b.samples;
}

// Whatever the kind: what a batch must be.
void expect_sound(const Batch& batch, const BatchOptions& options) {
  ASSERT_EQ(batch.ids.size(), batch.targets.size());
  ASSERT_EQ(batch.offsets.size(), batch.samples.size() + 1);
  ASSERT_EQ(batch.offsets.front(), 0);
  ASSERT_EQ(batch.offsets.back(), batch.tokens());
  ASSERT_LE(batch.longest(), options.block);
  ASSERT_LE(batch.sequences(), options.batch_size);
  for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    const auto begin = static_cast<std::size_t>(batch.offsets[s]);
    const auto end = static_cast<std::size_t>(batch.offsets[s + 1]);
    ASSERT_LT(begin, end);
    for (std::size_t i = begin; i + 1 < end; ++i) ASSERT_EQ(batch.targets[i], batch.ids[i + 1]);
  }
}

TEST(TrainingBatches, AreAFunctionOfTheirPlace) {
  const std::string text = verses(300);
  const BatchOptions options{.block = 32, .batch_size = 8, .accumulate = 2, .seed = 5};
  for (const DataKind& kind : kDataKinds) {
    SCOPED_TRACE(kind.name);
    const auto forward = kind.training(text, bytes(), options);
    std::map<index, Batch> seen;
    for (index update = 0; update < 100; ++update) {
      for (index step = 0; step < 2; ++step) {
        seen[2 * update + step] = forward->batch(update, step);
        expect_sound(seen[2 * update + step], options);
        ASSERT_LE(seen[2 * update + step].tokens(), forward->largest_batch());
      }
    }
    const auto jumping = kind.training(text, bytes(), options);
    Random random(1, RandomUse::kTest);
    for (int i = 0; i < 300; ++i) {
      const index place = random.below(200);
      ASSERT_TRUE(same(jumping->batch(place / 2, place % 2), seen[place]));
    }
    BatchOptions other = options;
    other.seed = 6;
    EXPECT_FALSE(same(kind.training(text, bytes(), other)->batch(0, 0), seen[0]));
    EXPECT_FALSE(same(seen[0], seen[2]));
  }
}

TEST(TrainingBatches, MicroStepsAreTheSequencesOfOneLargeBatch) {
  const std::string text = verses(300);
  for (const DataKind& kind : kDataKinds) {
    SCOPED_TRACE(kind.name);
    const auto whole = kind.training(text, bytes(), {.block = 32, .batch_size = 12});
    const auto parts =
        kind.training(text, bytes(), {.block = 32, .batch_size = 4, .accumulate = 3});
    EXPECT_EQ(whole->updates_per_epoch(), parts->updates_per_epoch());
    for (index update = 0; update < 2 * whole->updates_per_epoch(); ++update) {
      Batch joined;
      for (index step = 0; step < 3; ++step) {
        const Batch part = parts->batch(update, step);
        joined.ids.insert(joined.ids.end(), part.ids.begin(), part.ids.end());
        joined.samples.insert(joined.samples.end(), part.samples.begin(), part.samples.end());
      }
      const Batch batch = whole->batch(update, 0);
      ASSERT_EQ(joined.ids, batch.ids);
      ASSERT_EQ(joined.samples, batch.samples);
      ASSERT_EQ(std::set(batch.samples.begin(), batch.samples.end()).size(), batch.samples.size());
    }
  }
}

TEST(TrainingBatches, RefusePlacesThatDoNotExist) {
  for (const DataKind& kind : kDataKinds) {
    const auto batches = kind.training(verses(20), bytes(), {.block = 8, .batch_size = 2});
    EXPECT_THROW(batches->batch(-1, 0), Error);
    EXPECT_THROW(batches->batch(0, 1), Error);
    EXPECT_THROW(batches->batch(0, -1), Error);
  }
}

TEST(TrainingBatches, RefuseSizesOutOfRange) {
  constexpr index huge = INT64_MAX;
  for (const DataKind& kind : kDataKinds) {
    for (const BatchOptions& bad :
         {BatchOptions{.block = 0}, BatchOptions{.block = -5}, BatchOptions{.batch_size = 0},
          BatchOptions{.accumulate = 0}, BatchOptions{.block = huge},
          BatchOptions{.batch_size = huge}, BatchOptions{.block = 1 << 16, .batch_size = 1 << 15},
          BatchOptions{.block = 1 << 10, .batch_size = 1 << 10, .accumulate = 1 << 11}}) {
      expect_error(ErrorCode::kOptionValue, "", [&] { kind.training(letters(99), bytes(), bad); });
    }
    expect_error(ErrorCode::kOptionValue, "",
                 [&] { kind.evaluation(letters(9), bytes(), 0, "t"); });
  }
}

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
  EXPECT_EQ(accumulated->targets_per_epoch(), 1000);
  EXPECT_EQ(accumulated->largest_batch(), 50);
}

TEST(Blocks, NeedOneTokenMoreThanABlock) {
  EXPECT_NO_THROW(random_blocks(letters(9), bytes(), {.block = 8, .batch_size = 2})->batch(0, 0));
  expect_error(ErrorCode::kInputTooSmall, "it has 8 tokens, and at least 9 are needed",
               [] { random_blocks(letters(8), bytes(), {.block = 8, .batch_size = 2}); });
  expect_error(ErrorCode::kInputTooSmall, "it has 0 tokens",
               [] { random_blocks("", bytes(), {}); });
}

TEST(Blocks, EvaluationPredictsEveryTokenButTheFirstOnce) {
  for (const index tokens : {2, 9, 16, 17, 18, 100}) {
    const std::string text = letters(tokens);
    const EvaluationBatches batches(cut_blocks(text, bytes(), 8, "validation text"), 3);
    std::string predicted;
    for (index i = 0; i < batches.size(); ++i) {
      expect_sound(batches[i], {.block = 8, .batch_size = 3});
      predicted += bytes().decode(batches[i].targets);
    }
    EXPECT_EQ(predicted, text.substr(1));
  }
  expect_error(ErrorCode::kInputTooSmall, "the validation text is too small: it has 1 tokens",
               [] { cut_blocks("a", bytes(), 8, "validation text"); });
}

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
  EXPECT_EQ(batches->targets_per_epoch(), all.target_count());
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
  index first_half = 0;
  index most_spread = 0;
  const index updates = batches->updates_per_epoch();
  for (index update = 0; update < updates; ++update) {
    const Batch batch = batches->batch(update, 0);
    index shortest = batch.longest();
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      shortest = std::min<index>(shortest, batch.offsets[s + 1] - batch.offsets[s]);
    }
    most_spread = std::max(most_spread, batch.longest() - shortest);
    if (update < updates / 2) first_half += batch.tokens();
  }
  // 90 lengths over 64 updates of 16: an update spans one or two, more where the last window is
  // small.
  EXPECT_LE(most_spread, 6);
  // The updates are shuffled: neither half of the epoch has all the short lines.
  EXPECT_NEAR(static_cast<double>(first_half) / static_cast<double>(batches->targets_per_epoch()),
              0.5, 0.1);
}

TEST(Lines, NeedOneThatIsNotEmpty) {
  expect_error(ErrorCode::kInputTooSmall, "the training text is too small: it has 0 lines",
               [] { shuffled_lines("\n\n\r\n", bytes(), {}); });
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

TEST(DataKinds, AreFoundByName) {
  for (const DataKind& kind : kDataKinds) EXPECT_EQ(&data_kind(kind.name), &kind);
  expect_error(ErrorCode::kOptionValue, "data 'words' is not one of: blocks, lines",
               [] { data_kind("words"); });
}

}  // namespace
}  // namespace fovea
