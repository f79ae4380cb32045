// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/attention/score/made_rows.h"
#include "tests/attention/support/call.h"

namespace fovea::detail {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(RowMap, IsNeededForRowsThatChange) {
  const auto needed = [](const Score<float>& score, RotaryPairs pairs) {
    return RowMap<float>::needed(score, {pairs});
  };
  EXPECT_FALSE(needed(score::Dot(), RotaryPairs::kNone));
  EXPECT_FALSE(needed(score::L2(), RotaryPairs::kNone));
  EXPECT_TRUE(needed(score::Cosine(), RotaryPairs::kNone));
  EXPECT_TRUE(needed(score::Concat<float>(), RotaryPairs::kNone));
  EXPECT_TRUE(needed(score::Dot(), RotaryPairs::kHalves));
  EXPECT_EQ(made_width<float>(score::Cosine(), 8), 8);
  EXPECT_EQ(made_width<float>(score::Concat<float>(), 8), 9);
}

TEST(RowMap, OfCosineAndConcat) {
  const std::vector<double> row = {3, 4}, w = {10, 20, 30, 40};
  std::vector<double> to(3);
  const Score<double> cosine = score::Cosine();
  RowMap<double>(Context(1), cosine, {}, 2, 0, 0).query(row.data(), 0, 0, to.data());
  EXPECT_THAT(to, ElementsAre(0.6, 0.8, 0));
  const Score<double> concat = score::Concat<double>{{w.data(), 1, 4}};
  const RowMap<double> map(Context(1), concat, {}, 2, 0, 0);
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
  const Score<double> cosine = score::Cosine();
  const RowMap<double> map(Context(1), cosine, {RotaryPairs::kHalves}, 2, 0, 3);
  map.pull_key(row.data(), 3, none.data(), drow.data());
  EXPECT_THAT(drow, ElementsAre(0, 0));
  map.pull_query(row.data(), 0, 3, none.data(), drow.data());
  EXPECT_THAT(drow, ElementsAre(0, 0));
}

}  // namespace
}  // namespace fovea::detail
