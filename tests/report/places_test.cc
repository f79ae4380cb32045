// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/places.h"

#include <gtest/gtest.h>

#include <limits>

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

}  // namespace
}  // namespace fovea
