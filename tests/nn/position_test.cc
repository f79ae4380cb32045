// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/nn/embedding.h"
#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

Tensor table(index count, const SinusoidOptions& options) {
  return sinusoidal_positions(count, options, DType::kFloat64);
}

std::vector<double> row(const Tensor& t, index p) {
  return to_vector(t.rows<double>().slice(p, p + 1));
}

// Vaswani et al. 2017, section 3.5, computed in float64 without any library.
TEST(SinusoidalPositions, MatchGoldenValues) {
  const Tensor t = table(80, {.width = 4});
  EXPECT_THAT(row(t, 0), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(row(t, 1), Pointwise(DoubleNear(1e-12), {0.841470984808, 0.540302305868,
                                                       0.009999833334, 0.999950000417}));
  EXPECT_THAT(row(t, 79), Pointwise(DoubleNear(1e-12), {-0.444112668708, -0.895970946791,
                                                        0.710353272418, 0.703845315652}));
}

// Spec P2: sin and cos of one frequency, wherever they stand.
TEST(SinusoidalPositions, OrdersArePermutationsOfEachOther) {
  const Tensor a = table(9, {.width = 6});
  const Tensor b = table(9, {.width = 6, .order = SinusoidOrder::kSinCos});
  const Tensor c = table(9, {.width = 6, .order = SinusoidOrder::kCosSin});
  for (index p = 0; p < 9; ++p) {
    for (index i = 0; i < 3; ++i) {
      EXPECT_EQ(a.rows<double>()[p][2 * i], b.rows<double>()[p][i]);
      EXPECT_EQ(a.rows<double>()[p][2 * i + 1], b.rows<double>()[p][3 + i]);
      EXPECT_EQ(a.rows<double>()[p][2 * i], c.rows<double>()[p][3 + i]);
      EXPECT_EQ(a.rows<double>()[p][2 * i + 1], c.rows<double>()[p][i]);
    }
  }
}

// Spec P5: PE(p + k) is a rotation of PE(p) that depends on k alone.
TEST(SinusoidalPositions, AShiftIsARotation) {
  const index d = 8, k = 7;
  const Tensor t = table(40, {.width = d});
  for (index p = 0; p + k < 40; ++p) {
    for (index i = 0; i < d / 2; ++i) {
      const double angle = static_cast<double>(k) / std::pow(1e4, 2.0 * static_cast<double>(i) / d);
      const double *at = t.rows<double>()[p] + 2 * i, *moved = t.rows<double>()[p + k] + 2 * i;
      EXPECT_NEAR(moved[0], at[0] * std::cos(angle) + at[1] * std::sin(angle), 1e-12);
      EXPECT_NEAR(moved[1], at[1] * std::cos(angle) - at[0] * std::sin(angle), 1e-12);
    }
  }
}

// Spec P6: the position is the distance from a reference.
TEST(SinusoidalPositions, CountFromAReference) {
  const Tensor plain = table(9, {.width = 4}), moved = table(9, {.width = 4, .reference = 3});
  for (index p = 0; p < 9; ++p) EXPECT_EQ(row(moved, p), row(plain, std::abs(p - 3)));
}

TEST(SinusoidalPositions, NeedAnEvenWidth) {
  EXPECT_THROWS(table(3, {.width = 5}), kShape, "even and positive; it is 5");
}

const std::int32_t kPlaces[] = {0, 1, 0};

Variable joined(Tape& tape, PositionJoin join) {
  static const float e[] = {1, 2, 3, 4, 5, 6}, p[] = {10, 20, 30, 40};
  return join_positions(tape, tape.constant(Rows<const float>(e, 3, 2)),
                        {tape.constant(Rows<const float>(p, 2, 2)), {kPlaces, 3}}, join);
}

// Spec P4.
TEST(JoinPositions, AddsOrConcatenates) {
  EXPECT_THAT(output_of([](Tape& t) { return joined(t, PositionJoin::kAdd); }),
              ElementsAre(11, 22, 33, 44, 15, 26));
  EXPECT_THAT(output_of([](Tape& t) { return joined(t, PositionJoin::kConcatenate); }),
              ElementsAre(1, 2, 10, 20, 3, 4, 30, 40, 5, 6, 10, 20));
}

}  // namespace
}  // namespace fovea
