// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/precision_recall.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

TEST(PrecisionRecall, HasAPointForEachThreshold) {
  const std::vector<float> p = {0.9F, 0.8F, 0.8F, 0.3F, 0.1F};
  const std::vector<std::uint8_t> truth = {1, 0, 1, 1, 0};
  const auto points = precision_recall_curve(p, truth);
  ASSERT_EQ(points.size(), 3U);  // behind the last hit precision only falls
  EXPECT_NEAR(points[0].recall, 1 / 3.0, 1e-12);
  EXPECT_EQ(points[0].precision, 1);
  EXPECT_NEAR(points[1].recall, 2 / 3.0, 1e-12);  // equal probabilities are told together
  EXPECT_NEAR(points[1].precision, 2 / 3.0, 1e-12);
  EXPECT_EQ(points[2].recall, 1);
  EXPECT_EQ(points[2].precision, 0.75);
  EXPECT_EQ(points[2].threshold, double{0.3F});
}

TEST(PrecisionRecall, OfManyPointsKeepsSome) {
  std::vector<float> p;
  std::vector<std::uint8_t> truth;
  for (int i = 0; i < 5000; ++i) {
    p.push_back(static_cast<float>(5000 - i) / 5000);
    truth.push_back(i % 3 == 0 ? 1 : 0);
  }
  const auto points = precision_recall_curve(p, truth, 50);
  EXPECT_LE(points.size(), 52U);
  EXPECT_GE(points.size(), 50U);
  EXPECT_EQ(points.back().recall, 1);
  for (std::size_t n = 1; n < points.size(); ++n) EXPECT_GT(points[n].recall, points[n - 1].recall);
  EXPECT_TRUE(precision_recall_curve(p, std::vector<std::uint8_t>(5000)).empty());
}

}  // namespace
}  // namespace fovea
