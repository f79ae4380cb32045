// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "fovea/base/error.h"
#include "fovea/base/random.h"

namespace fovea {
namespace {

using testing::ElementsAre;

std::vector<std::string> labels(double low, double high, int most) {
  std::vector<std::string> names;
  for (const Tick& tick : axis_ticks(low, high, most)) names.push_back(tick.label);
  return names;
}

TEST(AxisTicks, AreRoundNumbers) {
  EXPECT_THAT(labels(0, 2000, 11), ElementsAre("0", "200", "400", "600", "800", "1000", "1200",
                                               "1400", "1600", "1800", "2000"));
  EXPECT_THAT(labels(0, 2000, 10), ElementsAre("0", "500", "1000", "1500", "2000"));
  EXPECT_THAT(labels(1.43, 4.61, 8), ElementsAre("1.5", "2.0", "2.5", "3.0", "3.5", "4.0", "4.5"));
  EXPECT_THAT(labels(-0.3, 0.3, 5), ElementsAre("-0.2", "0", "0.2"));
  EXPECT_THAT(labels(1.871, 1.874, 4), ElementsAre("1.871", "1.872", "1.873", "1.874"));
}

TEST(AxisTicks, ShortenLargeNumbersWithOneUnit) {
  EXPECT_THAT(labels(0, 20000, 5), ElementsAre("0", "5k", "10k", "15k", "20k"));
  EXPECT_THAT(labels(0, 1e6, 5), ElementsAre("0", "500k", "1000k"));
  EXPECT_THAT(labels(4.9e6, 6.1e6, 4), ElementsAre("5.0M", "5.5M", "6.0M"));
}

TEST(ShortNumber, HasFourDigitsAndTheUnitsOfTicks) {
  EXPECT_EQ(short_number(5.116), "5.116");
  EXPECT_EQ(short_number(9999), "9999");
  EXPECT_EQ(short_number(37440), "37.44k");
  EXPECT_EQ(short_number(-2.5e7), "-25M");
  EXPECT_EQ(short_number(4e15), "4e+15");
  EXPECT_EQ(short_number(0), "0");
}

TEST(AxisTicks, FitIntoAnyRange) {
  Random random(2, RandomUse::kTest);
  for (int round = 0; round < 20000; ++round) {
    const double size = std::pow(10.0, random.uniform(-9, 12));
    const double low = size * random.uniform(-2, 2);
    const double high = low + size * random.uniform(0.001, 3);
    const int most = static_cast<int>(random.below(12)) + 2;
    const auto ticks = axis_ticks(low, high, most);
    ASSERT_GE(ticks.size(), 1u) << low << " " << high << " " << most;
    ASSERT_LE(static_cast<int>(ticks.size()), most) << low << " " << high;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      ASSERT_GE(ticks[i].value, low - 1e-6 * (high - low));
      ASSERT_LE(ticks[i].value, high + 1e-6 * (high - low));
      if (i == 0) continue;
      ASSERT_NE(ticks[i].label, ticks[i - 1].label) << low << " " << high << " " << most;
    }
  }
}

TEST(AxisTicks, RefuseWhatIsNoRange) {
  EXPECT_THROW(axis_ticks(1, 1, 5), Error);
  EXPECT_THROW(axis_ticks(2, 1, 5), Error);
  EXPECT_THROW(axis_ticks(0, INFINITY, 5), Error);
  EXPECT_THROW(axis_ticks(NAN, 1, 5), Error);
  EXPECT_THROW(axis_ticks(-1e308, 1e308, 5), Error);
}

TEST(Places, GiveTheLargestThreeDigits) {
  EXPECT_EQ(places_for(0.5, 9), 3);
  EXPECT_EQ(places_for(1, 9), 2);
  EXPECT_EQ(places_for(23.4, 9), 1);
  EXPECT_EQ(places_for(1e6, 9), 0);
  EXPECT_EQ(places_for(1e-4, 5), 5);
  EXPECT_EQ(places_for(0, 9), 0);
  EXPECT_EQ(places_for(std::numeric_limits<double>::quiet_NaN(), 9), 0);
}

TEST(Places, WhatRoundsToZeroHasNoSign) {
  EXPECT_EQ(with_places(-0.0004, 3), "0.000");
  EXPECT_EQ(with_places(-0.4, 0), "0");
  EXPECT_EQ(with_places(-0.0006, 3), "-0.001");
  EXPECT_EQ(with_places(0.0004, 3), "0.000");
}

TEST(Places, ThreeDigitsKeepTheZerosAtTheEnd) {
  EXPECT_EQ(three_digits(2.8), "2.80");
  EXPECT_EQ(three_digits(-0.56), "-0.560");
  EXPECT_EQ(three_digits(15), "15.0");
  EXPECT_EQ(three_digits(515.2), "515");
  EXPECT_EQ(three_digits(1234), "1234");
  EXPECT_EQ(three_digits(3.06e-5), "3.06e-05");
  EXPECT_EQ(three_digits(1.5e-4), "0.000150");
  EXPECT_EQ(three_digits(0), "0");
}

}  // namespace
}  // namespace fovea
