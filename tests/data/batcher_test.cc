// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batcher.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "tests/data/support.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool same(const Batch& a, const Batch& b) {
  return a.ids == b.ids && a.targets == b.targets && a.offsets == b.offsets &&
         a.samples == b.samples;
}

TEST(TrainingBatches, AreAFunctionOfTheirPlace) {
  const std::string text = verses(300);
  const BatchOptions options{.block = 32, .batch_size = 8, .accumulate = 2, .seed = 5};
  for (const DataKind& kind : kDataKinds) {
    if (kind.name == kChat) continue;  // only who knows a chat template makes its batches
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

TEST(TrainingBatches, BatchesOfAnUpdateAreTheSequencesOfOneLargeBatch) {
  const std::string text = verses(300);
  for (const DataKind& kind : kDataKinds) {
    if (kind.name == kChat) continue;  // only who knows a chat template makes its batches
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
    if (kind.name == kChat) continue;  // only who knows a chat template makes its batches
    const auto batches = kind.training(verses(20), bytes(), {.block = 8, .batch_size = 2});
    EXPECT_THROW(batches->batch(-1, 0), Error);
    EXPECT_THROW(batches->batch(0, 1), Error);
    EXPECT_THROW(batches->batch(0, -1), Error);
  }
}

TEST(TrainingBatches, RefuseSizesOutOfRange) {
  constexpr index huge = INT64_MAX;
  for (const DataKind& kind : kDataKinds) {
    if (kind.name == kChat) continue;  // only who knows a chat template makes its batches
    for (const BatchOptions& bad :
         {BatchOptions{.block = 0, .batch_size = 4}, BatchOptions{.block = -5, .batch_size = 4},
          BatchOptions{.block = 8, .batch_size = 0},
          BatchOptions{.block = 8, .batch_size = 4, .accumulate = 0},
          BatchOptions{.block = huge, .batch_size = 4},
          BatchOptions{.block = 8, .batch_size = huge},
          BatchOptions{.block = 1 << 16, .batch_size = 1 << 15},
          BatchOptions{.block = 1 << 10, .batch_size = 1 << 10, .accumulate = 1 << 11},
          BatchOptions{.block = 8, .batch_size = 4, .max_length = 1},
          BatchOptions{.block = 8, .batch_size = 4, .max_length = -1},
          BatchOptions{.block = 8, .batch_size = 4, .max_length = 10},
          BatchOptions{.block = 8, .batch_size = 4, .max_length = huge}}) {
      expect_error(ErrorCode::kOptionValue, "", [&] { kind.training(letters(99), bytes(), bad); });
    }
    expect_error(ErrorCode::kOptionValue, "",
                 [&] { kind.evaluation(letters(9), bytes(), {.block = 0}, "t"); });
  }
}

TEST(DataKinds, AreFoundByName) {
  for (const DataKind& kind : kDataKinds) EXPECT_EQ(&data_kind(kind.name), &kind);
  expect_error(ErrorCode::kOptionValue, "--data: expected one of: blocks, lines, chat; got 'words'",
               [] { data_kind("words"); });
}

const std::vector<token> kStream = {10, 11, 12, 13, 14, 15};

TEST(Batch, PacksSequencesOneAfterAnother) {
  Batch batch;
  EXPECT_EQ(batch.tokens(), 0);
  append(batch, kStream, {.start = 3, .targets = 2}, 7);
  append(batch, kStream, {.start = 0, .targets = 3}, 8);
  EXPECT_THAT(batch.ids, ElementsAre(13, 14, 10, 11, 12));
  EXPECT_THAT(batch.targets, ElementsAre(14, 15, 11, 12, 13));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 2, 5));
  EXPECT_THAT(batch.samples, ElementsAre(7u, 8u));
  EXPECT_EQ(batch.tokens(), 5);
  EXPECT_EQ(batch.sequences(), 2);
  EXPECT_EQ(batch.target_count(), 5);
  batch.targets[1] = kIgnoredTarget;
  EXPECT_EQ(batch.target_count(), 4);
}

TEST(Batch, RefusesSlicesOutsideTheStream) {
  for (const Slice slice :
       {Slice{-1, 2}, Slice{0, 0}, Slice{0, 6}, Slice{5, 1}, Slice{9, 1}, Slice{1, INT64_MAX}}) {
    Batch batch;
    EXPECT_THROW(append(batch, kStream, slice, 0), Error);
    EXPECT_EQ(batch.tokens(), 0);
  }
}

TEST(Batch, CountsTheBytesThatItPredicts) {
  Batch batch;
  append(batch, {1, 3, 4, 2}, {0, 3}, 0);
  const std::vector<std::int32_t> bytes = {0, 0, 1, 1, 4};
  EXPECT_EQ(bytes_predicted(batch, bytes), 1 + 4 + 1);
  batch.targets[1] = kIgnoredTarget;
  EXPECT_EQ(bytes_predicted(batch, bytes), 1 + 1);
  EXPECT_THROW(bytes_predicted(batch, {0, 0}), Error);
}

TEST(Sequences, KnowTheirLargestBatch) {
  const Sequences sequences{.stream = kStream, .slices = {{0, 1}, {0, 4}, {1, 2}, {2, 3}}};
  EXPECT_EQ(sequences.target_count(), 10);
  EXPECT_EQ(sequences.largest(1), 4);
  EXPECT_EQ(sequences.largest(3), 9);
  EXPECT_EQ(sequences.largest(99), 10);
}

TEST(EvaluationBatches, GoThroughAllSequencesInOrder) {
  const EvaluationBatches batches({.stream = kStream, .slices = {{0, 1}, {0, 4}, {1, 2}}}, 2);
  ASSERT_EQ(batches.size(), 2);
  EXPECT_THAT(batches[0].samples, ElementsAre(0u, 1u));
  EXPECT_THAT(batches[0].offsets, ElementsAre(0, 1, 5));
  EXPECT_THAT(batches[1].samples, ElementsAre(2u));
  EXPECT_THAT(batches[1].targets, ElementsAre(12, 13));
  EXPECT_THROW(batches[2], Error);
  EXPECT_THROW(batches[-1], Error);
  EXPECT_THROW(EvaluationBatches({}, 0), Error);
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

TEST(Lines, AreSequencesFromBeginToEnd) {
  const Sequences s = cut_lines("ab\n\n\r\nc\r\nd", bytes(), {.block = 8}, "t");
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
    const EvaluationBatches batches(cut_lines(line + "\n", bytes(), {.block = 4}, "t"), 2);
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

std::unique_ptr<Tokenizer> numbers(bool marks) {
  return make_tokenizer(learn_words("1 2 3 4 5 6 7 8 9", "t", {.marks = marks, .min_count = 1}));
}

// The words of each sequence, its last target included.
std::vector<std::string> sequences_of(const Sequences& s, const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (const auto [start, targets] : s.slices) {
    const std::span all(s.stream);
    texts.push_back(tokenizer.decode(
        all.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(targets + 1))));
  }
  return texts;
}

// Spec T6, T7.
TEST(Lines, WithoutMarksAreTheirTokens) {
  const auto tokenizer = numbers(false);
  const Sequences s = cut_lines("1 2 3\n4\n \n5 x\n\n6\n", *tokenizer, {.block = 8}, "t");
  EXPECT_THAT(s.stream, ElementsAre(2, 3, 4, 6, 1));
  EXPECT_THAT(sequences_of(s, *tokenizer), ElementsAre("1 2 3", "5 <unk>"));
  EXPECT_EQ(s.single_lines, 2);
  EXPECT_EQ(s.truncated_lines, 0);
  const Batch batch = EvaluationBatches(s, 9)[0];
  EXPECT_THAT(batch.ids, ElementsAre(2, 3, 6));
  EXPECT_THAT(batch.targets, ElementsAre(3, 4, 1));
  expect_error(ErrorCode::kInputTooSmall,
               "t is too small: it has 0 lines of at least 2 tokens, and at least 1 is needed "
               "(2 of a single token predict nothing)",
               [&] { cut_lines("1\n2\n \n", *tokenizer, {.block = 8}, "t"); });
}

TEST(Lines, OfWordsWithMarksMayBeOneWord) {
  const auto tokenizer = numbers(true);
  const Sequences s = cut_lines("1\n \n2 3\n", *tokenizer, {.block = 8}, "t");
  EXPECT_THAT(s.stream, ElementsAre(kBeginWord, 4, kEndWord, kBeginWord, 5, 6, kEndWord));
  EXPECT_EQ(s.single_lines, 0);
  // "1\n2 3\n": with marks every byte is predicted.
  EXPECT_EQ(bytes_predicted(EvaluationBatches(s, 9)[0], tokenizer->bytes_predicted()), 6);
}

// Spec T6: the source cuts at the end, Keras' pad_sequences at the front.
TEST(Lines, AreTruncatedAtEitherEnd) {
  const std::string text = "1 2 3 4 5 6\n7 8\n1 2 3\n4 5 6 7\n";
  const auto plain = numbers(false), marked = numbers(true);
  const auto cut = [&](const Tokenizer& tokenizer, Truncate end) {
    const Sequences s =
        cut_lines(text, tokenizer, {.block = 8, .max_length = 3, .truncate = end}, "t");
    EXPECT_LE(s.largest(1), 2);
    return std::pair(sequences_of(s, tokenizer), s.truncated_lines);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(cut(*plain, Truncate::kEnd),
            std::pair(Texts({"1 2 3", "7 8", "1 2 3", "4 5 6"}), index{2}));
  EXPECT_EQ(cut(*plain, Truncate::kFront),
            std::pair(Texts({"4 5 6", "7 8", "1 2 3", "5 6 7"}), index{2}));
  // Marks are tokens: a line that is cut at an end lacks the mark there.
  EXPECT_EQ(cut(*marked, Truncate::kEnd), std::pair(Texts({"1 2", "7 8", "1 2", "4 5"}), index{4}));
  EXPECT_EQ(cut(*marked, Truncate::kFront),
            std::pair(Texts({"5 6", "7 8", "2 3", "6 7"}), index{4}));
  const Sequences front = cut_lines(
      "1 2 3 4\n", *marked, {.block = 2, .max_length = 3, .truncate = Truncate::kFront}, "t");
  EXPECT_THAT(front.stream, ElementsAre(6, 7, kEndWord));
  // As long as allowed: nothing is dropped.
  const Sequences whole = cut_lines("1 2 3\n", *plain, {.block = 2, .max_length = 3}, "t");
  EXPECT_EQ(whole.truncated_lines, 0);
  EXPECT_EQ(whole.target_count(), 2);
}

TEST(Lines, OfCharactersCanDoWithoutMarks) {
  const auto tokenizer = make_tokenizer({.kind = "byte", .marks = false});
  const Sequences s = cut_lines("ab\nc\ndef\n", *tokenizer, {.block = 8}, "t");
  EXPECT_THAT(sequences_of(s, *tokenizer), ElementsAre("ab", "def"));
  EXPECT_EQ(s.single_lines, 1);
}

// A line is encoded whole: however long it is, no word of it is cut in two.
TEST(Lines, OfAnyLengthKeepTheirWords) {
  std::string line;
  for (int i = 0; i < 700000; ++i) line += i % 3 == 0 ? "11 " : "222 ";
  const auto tokenizer = make_tokenizer(learn_words(line, "t", {}));
  const Sequences s = cut_lines(line, *tokenizer, {.block = 64}, "t");
  EXPECT_EQ(s.stream.size(), 700002u);
  EXPECT_EQ(std::count(s.stream.begin(), s.stream.end(), kUnknownWord), 0);
  EXPECT_EQ(s.target_count(), 700001);
}

TEST(Lines, AnEpochHoldsEverySequenceOnceInItsOwnOrder) {
  const std::string text = verses(1000);
  const auto all = cut_lines(text, bytes(), {.block = 64}, "t");
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
      static_cast<double>(cut_lines(verses(3000), bytes(), {.block = 128}, "t").target_count()) /
      static_cast<double>(updates);
  EXPECT_NEAR(static_cast<double>(first_updates) / (32 * mean), 1, 0.3);
}

// As they come, an update spans most of the 90 lengths, and every sequence is still there once.
TEST(Lines, OfAnUpdateMayHaveAnyLengths) {
  const BatchOptions options{.block = 128, .batch_size = 16, .by_length = false};
  const auto batches = shuffled_lines(verses(3000), bytes(), options);
  std::set<std::uint64_t> seen;
  index least_spread = 128;
  for (index update = 0; update < batches->updates_per_epoch(); ++update) {
    const Batch batch = batches->batch(update, 0);
    seen.insert(batch.samples.begin(), batch.samples.end());
    if (batch.sequences() < 16) continue;  // the last of the epoch
    index shortest = longest(batch);
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      shortest = std::min<index>(shortest, batch.offsets[s + 1] - batch.offsets[s]);
    }
    least_spread = std::min(least_spread, longest(batch) - shortest);
  }
  EXPECT_GT(least_spread, 20);
  EXPECT_EQ(seen.size(), batches->sequences().slices.size());
}

TEST(Sequences, ThatBelongTogetherAreInOneBatch) {
  Sequences sequences = cut_lines(verses(300), bytes(), {.block = 128}, "t");
  if (sequences.slices.size() % 2 == 1) sequences.slices.pop_back();
  sequences.together = 2;
  const index items = sequences.items();
  EXPECT_EQ(2 * items, static_cast<index>(sequences.slices.size()));
  const auto batches = shuffled_sequences(sequences, {.block = 128, .batch_size = 4});
  std::set<std::uint64_t> seen;
  const auto expect_pairs = [&](const Batch& batch, index largest) {
    ASSERT_EQ(batch.samples.size() % 2, 0u);
    EXPECT_LE(batch.tokens(), largest);
    for (std::size_t n = 0; n < batch.samples.size(); n += 2) {
      EXPECT_EQ(batch.samples[n] % 2, 0u);
      EXPECT_EQ(batch.samples[n + 1], batch.samples[n] + 1);
      EXPECT_TRUE(seen.insert(batch.samples[n]).second);
    }
  };
  for (index update = 0; update < batches->updates_per_epoch(); ++update) {
    expect_pairs(batches->batch(update, 0), batches->largest_batch());
  }
  EXPECT_EQ(static_cast<index>(seen.size()), items);
  seen.clear();
  const EvaluationBatches evaluation(sequences, 4);
  for (index i = 0; i < evaluation.size(); ++i) {
    expect_pairs(evaluation[i], evaluation.largest_batch());
  }
  EXPECT_EQ(static_cast<index>(seen.size()), items);
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
  expect_error(ErrorCode::kInputTooSmall, "training text is too small: it has 0 lines",
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
               [&] { cut_lines("a\n\na\xFF\n", *characters, {.block = 8}, "test text"); });
}

}  // namespace
}  // namespace fovea
