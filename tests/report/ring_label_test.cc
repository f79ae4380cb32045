// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/report/plot.h"

namespace fovea {
namespace {

PlotPoint same(const PlotPoint& point) { return point; }

using Points = std::vector<PlotPoint>;
constexpr PixelBox kArea = {{0, 0}, {200, 200}};

// Of a label of 80 pixels around a ring at (100, 100).
PlotPoint place(std::vector<Points> curves, const PixelBox& area = kArea) {
  std::vector<Curve> all;
  for (auto& points : curves) all.push_back({.name = "loss", .points = std::move(points)});
  return ring_label_place(all, same, {100, 100}, 40, area);
}
double label_y(std::vector<Points> curves, const PixelBox& area = kArea) {
  return place(std::move(curves), area).y;
}

TEST(RingLabel, StandsOverItsRingWhereNothingIsDrawn) { EXPECT_EQ(label_y({}), 86); }

TEST(RingLabel, StandsWhereNoCurveRuns) {
  const Points over = {{0, 80}, {200, 80}}, under = {{0, 120}, {200, 120}};
  EXPECT_EQ(label_y({over}), 124);
  EXPECT_EQ(label_y({under}), 86);
  EXPECT_EQ(label_y({over, under}), 104);  // beside the ring
  const Points through = {{0, 100}, {200, 100}};
  EXPECT_EQ(label_y({over, through, under}), 68);
  const PlotPoint beside = place({{{0, 200}, {100, 100}}}, {{0, 95}, {200, 200}});
  EXPECT_EQ(beside.y, 124);
  EXPECT_GT(beside.x - 40, 104);  // of a curve that rises to the ring
}

// One that runs up and down between two heights leaves no place over, under and beside the ring, at
// the distances that were tried once: 14 to 60 pixels.
TEST(RingLabel, GoesAsFarAsItMustFromANoisyCurve) {
  Points noisy;
  for (int x = 0; x <= 200; x += 2) noisy.push_back({double(x), x % 4 == 0 ? 30.0 : 170.0});
  EXPECT_GT(label_y({noisy}, {{0, -100}, {200, 200}}), -100);
  EXPECT_LE(label_y({noisy}, {{0, -100}, {200, 200}}), 30 - 4);
}

TEST(RingLabel, WhereCurvesAreEverywhereTheFewestRunThrough) {
  const Points over = {{0, 80}, {200, 80}}, wall = {{100, 0}, {100, 200}};
  std::vector<Points> everywhere;
  for (int y = 0; y <= 200; y += 10) everywhere.push_back({{0, double(y)}, {200, double(y)}});
  everywhere.push_back(over);
  const double y = label_y(everywhere);
  EXPECT_TRUE(y - 15 > 80 || y + 8 < 80) << y;
  EXPECT_NE(place({wall}).x, 100);  // not across an upright line
}

TEST(RingLabel, AGapOrACurveBesideItIsNoneThatRunsThrough) {
  EXPECT_EQ(label_y({{{0, 80}, kNowhere, {200, 80}}}), 86);
  EXPECT_EQ(label_y({{{0, 80}, {54, 80}}, {{146, 80}, {200, 80}}}), 86);
}

TEST(RingLabel, StaysInsideThePlot) {
  EXPECT_EQ(label_y({}, {{0, 80}, {200, 200}}), 124);
  EXPECT_EQ(place({}, {{90, 0}, {200, 200}}).x, 130);
}

}  // namespace
}  // namespace fovea
