// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "fovea/report/numbers.h"

namespace fovea {
namespace {

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
