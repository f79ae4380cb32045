// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/rotary.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/attention/support/call.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

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

template <class T>
void turn_as_the_formula(RotaryPairs pairs, index D, index position) {
  SCOPED_TRACE(::testing::Message() << "D " << D << ", position " << position);
  std::vector<T> row(static_cast<std::size_t>(D)), expected(row.size());
  for (index c = 0; c < D; ++c) {
    row[static_cast<std::size_t>(c)] = static_cast<T>(std::sin(static_cast<double>(c + position)));
  }
  for (index c = 0; c < D / 2; ++c) {
    const double power = 2 * static_cast<double>(c) / static_cast<double>(D);
    const double angle = static_cast<double>(position) * std::pow(100.0, -power);
    const T cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
    const bool halves = pairs == RotaryPairs::kHalves;
    const auto one = static_cast<std::size_t>(halves ? c : 2 * c);
    const auto other = static_cast<std::size_t>(halves ? c + D / 2 : 2 * c + 1);
    expected[one] = row[one] * cosine - row[other] * sine;
    expected[other] = row[one] * sine + row[other] * cosine;
  }
  for_each_isa([&] {
    const RotaryTable<T> table(Context(1), {pairs, 100}, D, 0, position);
    std::vector<T> turned(row.size()), in_place = row;
    table.turn(row.data(), position, turned.data());
    table.turn(in_place.data(), position, in_place.data());
    EXPECT_EQ(turned, expected);
    EXPECT_EQ(in_place, expected);
  });
}

// Widths with and without a rest behind the whole vectors; in place too.
TEST(RotaryTable, EveryInstructionSetHasTheBitsOfTheFormula) {
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    for (const index D : {2, 6, 32, 46, 64}) {
      for (const index position : {1, 7, 20}) {
        turn_as_the_formula<float>(pairs, D, position);
        turn_as_the_formula<double>(pairs, D, position);
      }
    }
  }
}

// Angles of stretched models: each pair divided by its own number, and all multiplied.
TEST(RotaryTable, PairsHaveTheirDivisors) {
  const std::vector<double> row = {1, 2, 3, 4};
  std::vector<double> turned(4), back(4);
  const Rotary rotary{
      .pairs = RotaryPairs::kHalves, .base = 100, .divisors = {2, 8}, .amplitude = 1.5};
  const RotaryTable<double> table(Context(1), rotary, 4, 0, 3);
  table.turn(row.data(), 3, turned.data());
  EXPECT_DOUBLE_EQ(turned[0], 1.5 * std::cos(1.5) - 3 * (1.5 * std::sin(1.5)));
  const double angle = 0.3 / 8;
  EXPECT_NEAR(turned[3], 1.5 * (2 * std::sin(angle) + 4 * std::cos(angle)), 1e-15);
  table.turn_back(turned.data(), 3, back.data());  // the transpose, not the inverse
  for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(back[c], 1.5 * 1.5 * row[c], 1e-14);
}

TEST(RotaryTable, StretchedPositionsAreThoseOfTheReference) {
  using testing::Call;
  Rotary rotary{.base = 50, .first = 3, .divisors = {1, 1.25, 3, 8}, .amplitude = 1.2};
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    rotary.pairs = pairs;
    Call<double> fused({.B = 2, .T = 70, .S = 90, .H = 4, .G = 2, .D = 8, .Dv = 5});
    Call<double> plain = fused;
    fused.run({.rotary = rotary}, testing::Method::kFused, 2);
    plain.run({.rotary = rotary}, testing::Method::kReference);
    EXPECT_THAT(fused.o, Pointwise(DoubleNear(1e-12), plain.o));
    EXPECT_THAT(fused.dq, Pointwise(DoubleNear(1e-12), plain.dq));
    EXPECT_THAT(fused.dk, Pointwise(DoubleNear(1e-12), plain.dk));
    Call<double> unstretched = fused;
    unstretched.forward({.rotary = {pairs, 50, 3}});
    EXPECT_NE(unstretched.o, fused.o);
  }
  Call<double> call({.T = 2, .S = 2, .D = 4, .Dv = 4});
  EXPECT_THROWS(call.forward({.rotary = {RotaryPairs::kHalves, 50, 0, {1, 2, 3}}}), kShape,
                "a divisor for each pair of columns: expected 2, got 3");
  EXPECT_THROWS(call.forward({.rotary = {RotaryPairs::kHalves, 50, 0, {1, 0}}}), kOptionValue,
                "must be > 0");
  EXPECT_THROWS(call.forward({.rotary = {RotaryPairs::kHalves, 50, 0, {}, NAN}}), kOptionValue,
                "must be > 0");
}

}  // namespace
}  // namespace fovea::detail
