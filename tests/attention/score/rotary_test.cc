// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/rotary.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/attention/support/call.h"

namespace fovea::detail {
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

}  // namespace
}  // namespace fovea::detail
