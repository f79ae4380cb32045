// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/metrics/sum.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Spread, OfARunAndOfSeveral) {
  EXPECT_EQ(mean({3}), 3);
  EXPECT_EQ(mean({1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(sample_deviation({1, 3, 5}), 2);
  EXPECT_EQ(sample_deviation({.25, .25}), 0);
  EXPECT_THROWS(mean({}), kShape, "no values");
  EXPECT_THROWS(sample_deviation({1}), kShape, "expected two values or more, got 1");
}

}  // namespace
}  // namespace fovea
