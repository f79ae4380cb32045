// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/mean_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fovea/base/error.h"

namespace fovea {
namespace {

// t and the interval by scipy.stats.t.interval(.95, n - 1, mean, sem) 1.10.
TEST(MeanInterval, IsThatOfStudentsT) {
  const Interval two = mean_interval(std::vector<double>{1, 3});
  EXPECT_DOUBLE_EQ(two.value, 2);
  EXPECT_NEAR(two.low, 2 - 12.7062047, 1e-5);
  const Interval five = mean_interval(std::vector<double>{.8, .82, .79, .85, .84});
  EXPECT_NEAR(five.value, .82, 1e-12);
  EXPECT_NEAR(five.high - five.value, 2.7764451 * std::sqrt(.0026 / 4 / 5), 1e-6);
  std::vector<double> many;
  for (int n = 0; n < 21; ++n) many.push_back(n);  // 20 degrees of freedom: 2.0859634
  EXPECT_NEAR(mean_interval(many).high - 10, 2.0859634 * std::sqrt(770.0 / 20 / 21), 1e-3);
}

TEST(MeanInterval, HasNoneOfOneValue) {
  EXPECT_TRUE(std::isnan(mean_interval(std::vector<double>{1}).low));
  EXPECT_THROW(mean_interval({}), Error);
}

}  // namespace
}  // namespace fovea
