// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/rotary.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/attention/support/call.h"
#include "tests/isa.h"

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

// Widths with and without a rest behind the whole vectors; in place too.
TEST(RotaryTable, EveryInstructionSetHasTheBitsOfTheFormula) {
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    for (const index D : {2, 6, 32, 46, 64}) {
      std::vector<float> row(static_cast<std::size_t>(D)), expected(row.size());
      for (index c = 0; c < D; ++c) row[static_cast<std::size_t>(c)] = std::sin(float(c) + 1);
      for (index c = 0; c < D / 2; ++c) {
        const double angle = 7 * std::pow(100.0, -2 * double(c) / double(D));
        const auto cosine = static_cast<float>(std::cos(angle));
        const auto sine = static_cast<float>(std::sin(angle));
        const bool halves = pairs == RotaryPairs::kHalves;
        const auto one = static_cast<std::size_t>(halves ? c : 2 * c);
        const auto other = static_cast<std::size_t>(halves ? c + D / 2 : 2 * c + 1);
        expected[one] = row[one] * cosine - row[other] * sine;
        expected[other] = row[one] * sine + row[other] * cosine;
      }
      for_each_isa([&] {
        const RotaryTable<float> table(Context(1), {pairs, 100}, D, 0, 7);
        std::vector<float> turned(row.size()), in_place = row;
        table.turn(row.data(), 7, turned.data());
        table.turn(in_place.data(), 7, in_place.data());
        EXPECT_EQ(turned, expected) << "D " << D;
        EXPECT_EQ(in_place, expected) << "D " << D;
      });
    }
  }
}

}  // namespace
}  // namespace fovea::detail
