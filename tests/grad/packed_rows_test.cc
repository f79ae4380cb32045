// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/packed_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/grad/tape.h"
#include "fovea/kernel/dropout.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(PackedRows, CountsPositionsFromEachSequence) {
  Tape tape{Context(1)};
  const std::int32_t offsets[] = {0, 2, 2, 5};
  const std::uint64_t samples[] = {40, 41, 42};
  const PackedRows rows = lay_out_rows(tape, 5, {offsets, 4}, {samples, 3}, 10);
  EXPECT_EQ(rows.count(), 3);
  EXPECT_THAT(to_vector(rows.positions), ElementsAre(10, 11, 10, 11, 12));
  EXPECT_EQ(rows.rows[1].sample, 40);
  EXPECT_EQ(rows.rows[4].sample, 42);
  EXPECT_EQ(rows.rows[4].row, 12);
}

// Samples that differ in the upper half alone have different masks.
TEST(PackedRows, KeepsTheWholeNameOfASample) {
  Tape tape{Context(1)};
  const std::int32_t offsets[] = {0, 1, 2};
  const std::uint64_t samples[] = {5, (1ull << 40) + 5};
  EXPECT_EQ(lay_out_rows(tape, 2, {offsets, 3}, {samples, 2}).rows[1].sample, samples[1]);
}

TEST(PackedRows, NumbersSequencesWithoutNames) {
  Tape tape{Context(1)};
  const std::int32_t offsets[] = {0, 1, 2};
  const PackedRows rows = lay_out_rows(tape, 2, {offsets, 3}, {});
  EXPECT_EQ(rows.rows[1].sample, 1);
}

TEST(PackedRows, OffsetsAreSumsOfLengths) {
  const std::int32_t lengths[] = {2, 0, 3};
  EXPECT_THAT(offsets_of(lengths), ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(offsets_of({}), ElementsAre(0));
  const std::int32_t negative[] = {2, -1}, large[] = {2147483647, 1};
  EXPECT_THROWS(offsets_of(negative), kShape, "a length is -1");
  EXPECT_THROWS(offsets_of(large), kShape, "2^31 rows");
}

TEST(PackedRows, RefusesOffsetsThatDoNotCoverTheRows) {
  Tape tape{Context(1)};
  const std::int32_t offsets[] = {0, 3, 2, 5};
  EXPECT_THROWS(lay_out_rows(tape, 6, {offsets, 4}, {}), kShape, "from 0 to the 6 rows");
  EXPECT_THROWS(lay_out_rows(tape, 5, {offsets, 4}, {}), kShape, "sequence 1 has offsets 3 and 2");
  EXPECT_THROWS(lay_out_rows(tape, 0, {}, {}), kShape, "one entry more");
  const std::uint64_t samples[] = {1};
  EXPECT_THROWS(lay_out_rows(tape, 5, {offsets, 4}, {samples, 1}), kShape, "1 samples for 3");
}

}  // namespace
}  // namespace fovea
