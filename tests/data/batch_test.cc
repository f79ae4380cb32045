// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/base/error.h"
#include "fovea/data/batcher.h"

namespace fovea {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace fovea
