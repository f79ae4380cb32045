// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/batcher.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "tests/data/support.h"

namespace fovea {
namespace {

bool same(const Batch& a, const Batch& b) {
  return a.ids == b.ids && a.targets == b.targets && a.offsets == b.offsets &&
         a.samples == b.samples;
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

TEST(TrainingBatches, BatchesOfAnUpdateAreTheSequencesOfOneLargeBatch) {
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
  expect_error(ErrorCode::kOptionValue, "--data: expected one of: blocks, lines; got 'words'",
               [] { data_kind("words"); });
}

}  // namespace
}  // namespace fovea
