// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "tests/report/xml.h"

namespace fovea {
namespace {

HeadCurves of(std::size_t layers, std::size_t heads) {
  HeadCurves curves{.title = "entropy", .y_label = "nats"};
  for (std::size_t l = 0; l < layers; ++l) {
    auto& layer = curves.heads.emplace_back();
    for (std::size_t h = 0; h < heads; ++h) {
      const double y = static_cast<double>(10 * l + h);
      layer.push_back({{1, y}, {2, y + 1}});
    }
  }
  return curves;
}

TEST(HeadsPlot, HasACurveForEachHeadAndTheMeanOfEachLayer) {
  const Plot plot = heads_plot(of(3, 2));
  ASSERT_EQ(plot.curves.size(), 9u);
  EXPECT_EQ(plot.curves[1].name, "layer 1, head 2");
  EXPECT_EQ(plot.curves[1].stroke, Stroke::kThin);
  EXPECT_EQ(plot.curves[6].name, "layer 1");
  EXPECT_EQ(plot.curves[7].name, "2");
  EXPECT_EQ(plot.curves[7].stroke, Stroke::kSolid);
  EXPECT_EQ(plot.curves[7].points[1].y, 11.5);
  EXPECT_NE(plot.curves[6].ink, plot.curves[7].ink);
}

TEST(HeadsPlot, OfManyLayersSharesShades) {
  const Plot plot = heads_plot(of(12, 1));
  ASSERT_EQ(plot.curves.size(), 12u + kShades);
  EXPECT_EQ(plot.curves[12].name, "layers 1-2");
  EXPECT_EQ(plot.curves[12].points[0].y, 5);
  EXPECT_EQ(plot.curves[0].ink, plot.curves[1].ink);
  EXPECT_NE(plot.curves[1].ink, plot.curves[2].ink);
}

TEST(HeadsPlot, LeavesOutOfAMeanWhatIsNotFinite) {
  HeadCurves curves = of(1, 3);
  curves.heads[0][1][0].y = -HUGE_VAL;
  EXPECT_EQ(heads_plot(curves).curves.back().points[0].y, 1);  // of 0 and 2
}

TEST(HeadsPlot, NamesAllLayersOnThePage) {
  constexpr std::string_view kName = "class=\"name\"";
  for (const std::size_t layers : {1, 6, 7, 12, 24, 48, 96}) {
    const std::string svg = draw_svg(heads_plot(of(layers, 1)));
    int found = 0;
    for (std::size_t at = svg.find(kName); at != svg.npos; at = svg.find(kName, at + 1), ++found) {
      const std::size_t begin = svg.find('>', at) + 1;
      const std::string x = svg.substr(svg.rfind("x=\"", at) + 3);
      const auto length = static_cast<double>(svg.find('<', begin) - begin);
      EXPECT_LE(std::stod(x) + 6.6 * length, 800) << layers;
    }
    EXPECT_EQ(found, static_cast<int>(std::min<std::size_t>(layers, kShades)));
  }
}

TEST(HeadsPlot, OfALongRunIsThinned) {
  HeadCurves curves = of(1, 1);
  for (int n = 0; n < 20000; ++n) {
    curves.heads[0][0].push_back({static_cast<double>(n + 3), std::sin(static_cast<double>(n))});
  }
  Plot plot = heads_plot(curves);
  plot.curves.pop_back();  // the mean
  EXPECT_LT(draw_svg(plot).size(), 12000u);
}

TEST(HeadsPlot, IsAPageWithOthers) {
  const Plot plots[] = {loss_plot({.validation = {{1, 2}, {3, 4}}}), heads_plot(of(2, 2)),
                        heads_plot(of(0, 0))};
  const std::string page = draw_page(plots);
  EXPECT_EQ(xml_error(page), "");
  EXPECT_THAT(page, testing::HasSubstr("viewBox=\"0 0 800 1380\""));
  EXPECT_THAT(page, testing::HasSubstr("<title>layer 2, head 1</title>"));
}

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
