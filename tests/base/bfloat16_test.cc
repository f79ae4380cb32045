// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "fovea/base/precision.h"
#include "fovea/base/random.h"

namespace fovea {
namespace {

// By definition: the candidate nearest to x, the even one of two equally near.
BFloat16 nearest_by_definition(double x) {
  const float cut = static_cast<float>(x);
  const auto around = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(cut) >> 16);
  BFloat16 best{around};
  double best_error = std::abs(static_cast<double>(to_float(best)) - x);
  for (int step = -1; step <= 1; ++step) {
    const BFloat16 candidate{static_cast<std::uint16_t>(around + step)};
    const float value = to_float(candidate);
    if (!std::isfinite(value) || std::signbit(value) != std::signbit(cut)) continue;
    const double error = std::abs(static_cast<double>(value) - x);
    if (error < best_error || (error == best_error && candidate.bits % 2 == 0)) {
      best = candidate;
      best_error = error;
    }
  }
  return best;
}

TEST(BFloat16, EveryValueSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const BFloat16 x{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_float(to_bfloat16(wide))));
    } else {
      EXPECT_EQ(to_bfloat16(wide), x) << bits;
      EXPECT_EQ(to_bfloat16(static_cast<double>(wide)), x) << bits;
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  Random random(1, RandomUse::kTest);
  for (int i = 0; i < 100000; ++i) {
    std::uint32_t bits = random.next_u32();
    if (i % 2 == 0) bits = (bits & 0xffff0000u) | 0x8000u;  // an exact tie
    const float x = std::bit_cast<float>(bits);
    if (!(std::abs(x) <= to_float({0x7f7f}))) continue;  // the next one up is infinite
    EXPECT_EQ(to_bfloat16(x), nearest_by_definition(x)) << x;
  }
}

TEST(BFloat16, ADoubleIsRoundedOnce) {
  // Just above the tie between 1 and 1 + 2^-7: float32 would round it to the tie, and that to 1.
  EXPECT_EQ(to_float(to_bfloat16(1.0 + 0x1p-8 + 0x1p-40)), 1.0f + 0x1p-7f);
  EXPECT_EQ(to_float(to_bfloat16(1.0 + 0x1p-8)), 1.0f);
  EXPECT_EQ(to_float(to_bfloat16(1.0 + 0x3p-8 - 0x1p-40)), 1.0f + 0x1p-7f);
  Random random(2, RandomUse::kTest);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::ldexp(random.normal(), static_cast<int>(random.below(260)) - 140);
    EXPECT_EQ(to_bfloat16(x), nearest_by_definition(x)) << x;
  }
}

TEST(BFloat16, KeepsNanInfinityAndSign) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float(to_bfloat16(kInfinity)), kInfinity);
  EXPECT_EQ(to_float(to_bfloat16(-kInfinity)), -kInfinity);
  EXPECT_EQ(to_float(to_bfloat16(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(to_float(to_bfloat16(1e300)), kInfinity);
  EXPECT_EQ(to_bfloat16(-0.0f).bits, 0x8000);
  // A payload in the lower half only: cutting it off would leave infinity.
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0xffffffffu)))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::numeric_limits<double>::quiet_NaN()))));
}

}  // namespace
}  // namespace fovea
