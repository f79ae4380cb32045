// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/ring_label.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fovea {
namespace {

PlotPoint same(const PlotPoint& point) { return point; }

double label_y(std::vector<std::vector<PlotPoint>> curves, double top = 0, double bottom = 200) {
  std::vector<Curve> all;
  for (auto& points : curves) all.push_back({.name = "loss", .points = std::move(points)});
  return ring_label_y(all, same, {100, 100}, 40, top, bottom);
}

TEST(RingLabel, StandsOverItsRingWhereNothingIsDrawn) { EXPECT_EQ(label_y({}), 86); }

TEST(RingLabel, StandsWhereTheFewestCurvesRunThrough) {
  const std::vector<PlotPoint> over = {{0, 80}, {200, 80}}, under = {{0, 120}, {200, 120}};
  EXPECT_EQ(label_y({over}), 124);
  EXPECT_EQ(label_y({under}), 86);
  EXPECT_EQ(label_y({over, under}), 68);
  EXPECT_EQ(label_y({over, under, {{50, 60}, {150, 60}}}), 142);
  EXPECT_EQ(label_y({{{0, 200}, {100, 100}}}, 95), 160);  // below a curve that rises to the ring
}

TEST(RingLabel, AGapOrACurveBesideItIsNoneThatRunsThrough) {
  EXPECT_EQ(label_y({{{0, 80}, kNowhere, {200, 80}}}), 86);
  EXPECT_EQ(label_y({{{0, 80}, {59, 80}}, {{141, 80}, {200, 80}}}), 86);
}

TEST(RingLabel, StaysInsideThePlot) {
  EXPECT_EQ(label_y({}, 80), 124);
  EXPECT_EQ(label_y({}, 0, 90), 68);
}

}  // namespace
}  // namespace fovea
