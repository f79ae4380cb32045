// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fovea/report/curves.h"

namespace fovea {
namespace {

std::vector<PlotPoint> line(int points) {
  std::vector<PlotPoint> all;
  for (int i = 1; i <= points; ++i) all.push_back({static_cast<double>(i), 10.0 * i});
  return all;
}

TEST(Series, KeepsEveryMeasurementOfAShortCurve) {
  const std::vector<PlotPoint> points = line(7);
  const Series series = series_of("loss", points, 7);
  EXPECT_FALSE(series.is_thinned());
  ASSERT_EQ(series.points.size(), 7u);
  EXPECT_EQ(series.points[2].first, 3);
  EXPECT_EQ(series.points[2].mean, 30);
  const Curve curve = curve_of(series, Ink::kBlue, Stroke::kSolid);
  EXPECT_EQ(curve.points[2].x, 3);
  EXPECT_TRUE(curve.low.empty());
}

// Every measurement belongs to exactly one group, and lies between its lowest and highest.
TEST(Series, GroupsCoverALongCurve) {
  for (const int count : {8, 99, 100, 101, 12345}) {
    const std::vector<PlotPoint> points = line(count);
    const Series series = series_of("loss", points, 10);
    EXPECT_LE(series.points.size(), 10u);
    index measured = 0;
    double next = 1, sum = 0;
    for (const SeriesPoint& p : series.points) {
      EXPECT_EQ(p.first, next);
      EXPECT_EQ(p.low, 10 * p.first);
      EXPECT_EQ(p.high, 10 * p.last);
      EXPECT_DOUBLE_EQ(p.mean, 5 * (p.first + p.last));
      measured += p.count;
      sum += p.mean * static_cast<double>(p.count);
      next = p.last + 1;
    }
    EXPECT_EQ(measured, count);
    EXPECT_NEAR(sum, 5.0 * count * (count + 1), 1e-6 * sum);
    EXPECT_EQ(series.is_thinned(), count > 10);
  }
}

TEST(Series, LeavesOutWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<PlotPoint> points = {{1, nan}, {2, 4},   {3, INFINITY},
                                         {4, 6},   {5, nan}, {6, nan}};
  const Series series = series_of("loss", points, 2);
  ASSERT_EQ(series.points.size(), 2u);
  EXPECT_EQ(series.points[0].mean, 4);
  EXPECT_EQ(series.points[0].high, 4);
  EXPECT_EQ(series.points[1].mean, 6);
  const Series none = series_of("loss", std::span(points).last(2), 1);
  EXPECT_TRUE(std::isnan(none.points.at(0).mean));
  EXPECT_TRUE(series_of("loss", {}, 5).points.empty());
}

TEST(Series, AThinnedCurveHasABand) {
  const Curve curve = curve_of(series_of("loss", line(100), 10), Ink::kRun0, Stroke::kDashed);
  ASSERT_EQ(curve.low.size(), 10u);
  EXPECT_EQ(curve.points[0].x, 5.5);
  EXPECT_EQ(curve.low[0], 10);
  EXPECT_EQ(curve.high[0], 100);
}

}  // namespace
}  // namespace fovea
