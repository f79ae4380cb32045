// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/row_map.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/attention/support/call.h"

namespace fovea::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(RotaryTable, TurnsByThePositionAndBack) {
  const std::vector<double> row = {1, 2, 3, 4};
  std::vector<double> turned(4), back(4);
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    const RotaryTable<double> table(Context(1), {pairs, 100}, 4, -3, 5);
    table.turn(row.data(), 0, turned.data());
    EXPECT_EQ(turned, row);
    for (const index position : {-3, 5}) {
      table.turn(row.data(), position, turned.data());
      table.turn_back(turned.data(), position, back.data());
      EXPECT_THAT(back, Pointwise(DoubleNear(1e-15), row));
    }
  }
  // A quarter turn of the first pair is x, y -> -y, x; the second turns by a tenth of it.
  const RotaryTable<double> table(Context(1), {RotaryPairs::kInterleaved, 100}, 4, 0, 1);
  table.turn(row.data(), 1, turned.data());
  EXPECT_DOUBLE_EQ(turned[0], std::cos(1.0) - 2 * std::sin(1.0));
  EXPECT_DOUBLE_EQ(turned[3], 3 * std::sin(0.1) + 4 * std::cos(0.1));
}

TEST(RowMap, IsNeededUnlessTheScoreIsAPlainDotProduct) {
  EXPECT_FALSE(RowMap<float>::needed({}));
  EXPECT_TRUE(RowMap<float>::needed({.score = score::Cosine()}));
  EXPECT_TRUE(RowMap<float>::needed({.score = score::Concat<float>()}));
  EXPECT_TRUE(RowMap<float>::needed({.rotary = {RotaryPairs::kHalves}}));
  EXPECT_EQ(RowMap<float>::width({.score = score::Cosine()}, 8), 8);
  EXPECT_EQ(RowMap<float>::width({.score = score::Concat<float>()}, 8), 9);
}

TEST(RowMap, OfCosineAndConcat) {
  const std::vector<double> row = {3, 4}, w = {10, 20, 30, 40};
  std::vector<double> to(3);
  const Attention<double> cosine{.score = score::Cosine()};
  RowMap<double>(Context(1), cosine, 2, 0, 0).query(row.data(), 0, 0, to.data());
  EXPECT_THAT(to, ElementsAre(0.6, 0.8, 0));
  const Attention<double> concat{.score = score::Concat<double>{{w.data(), 1, 4}}};
  const RowMap<double> map(Context(1), concat, 2, 0, 0);
  map.query(row.data(), 0, 0, to.data());
  EXPECT_THAT(to, ElementsAre(3 * 10 + 4 * 20, 30, 40));
  map.key(row.data(), 0, to.data());
  EXPECT_THAT(to, ElementsAre(1, 3, 4));
  std::vector<double> sums(4, 100);
  const std::vector<double> gradient = {2, 5, 7};
  map.add_weights(row.data(), 0, gradient.data(), sums.data());
  EXPECT_THAT(sums, ElementsAre(106, 108, 105, 107));
}

TEST(RowMap, ARowWithoutAGradientGetsNoneWhateverItHolds) {
  const std::vector<double> row = {NAN, INFINITY}, none = {0, 0, 0};
  std::vector<double> drow(2, 77);
  const Attention<double> attention{.score = score::Cosine(), .rotary = {RotaryPairs::kHalves}};
  const RowMap<double> map(Context(1), attention, 2, 0, 3);
  map.pull_key(row.data(), 3, none.data(), drow.data());
  EXPECT_THAT(drow, ElementsAre(0, 0));
  map.pull_query(row.data(), 0, 3, none.data(), drow.data());
  EXPECT_THAT(drow, ElementsAre(0, 0));
}

}  // namespace
}  // namespace fovea::testing
