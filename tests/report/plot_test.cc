// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/report/curves.h"
#include "tests/report/xml.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

LossCurves example() {
  LossCurves losses{.title = "tiny <shakespeare>"};
  losses.best = 750;
  for (int i = 1; i <= 1000; ++i) {
    const double loss = 1.5 + 2.5 * std::exp(-i / 150.0);
    losses.last_batch.push_back({static_cast<double>(i), loss + 0.05 * std::sin(i)});
    if (i % 10 == 0) losses.running_mean.push_back({static_cast<double>(i), loss + 0.1});
    if (i % 250 == 0) losses.interval_mean.push_back({static_cast<double>(i), loss + 0.2});
    if (i % 250 == 0)
      losses.validation.push_back({static_cast<double>(i), i == 750 ? 1.4 : loss + 0.15});
  }
  return losses;
}

int count(const std::string& text, std::string_view part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// The points of every path of a class but its sample in the legend, as x and y in pixels.
std::vector<PlotPoint> points_of(const std::string& svg, const std::string& classes) {
  std::vector<PlotPoint> points;
  const std::string path = "<path class=\"curve " + classes + "\" d=\"";
  for (std::size_t at = svg.find(path); at != svg.npos; at = svg.find(path, at + 1)) {
    const char* d = svg.c_str() + at + path.size();
    while (*d == 'M' || *d == 'L') {
      char* end = nullptr;
      const double x = std::strtod(d + 1, &end);
      const double y = std::strtod(end, &end);
      d = end;
      if (*d != 'h') points.push_back({x, y});
    }
  }
  return points;
}

TEST(Plot, IsWellFormedAndSelfContained) {
  const std::string svg = draw_svg(loss_plot(example()));
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("tiny &lt;shakespeare&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_EQ(svg, draw_svg(loss_plot(example())));
}

TEST(Plot, BarsShowTheSpreadOfAPoint) {
  Plot plot{.title = "spread", .curves = {{.name = "a", .points = {{1, 2}, {2, 4}, {3, 4}}}}};
  EXPECT_EQ(count(draw_svg(plot), "class=\"curve bar"), 0);
  plot.curves[0].spread = {1, 0, std::nan("")};
  const std::string svg = draw_svg(plot);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(count(svg, "class=\"curve bar"), 1);
  const std::vector<PlotPoint> ends = points_of(svg, "bar blue");
  const std::vector<PlotPoint> points = points_of(svg, "solid blue");
  ASSERT_EQ(ends.size(), 6u);
  EXPECT_NEAR(ends[2].x, points[0].x, 0.01);
  EXPECT_NEAR(points[0].y - ends[5].y, ends[0].y - points[0].y, 0.2);
  // From 1 on, half as far below 2 as 4 is above it.
  EXPECT_NEAR(ends[0].y - points[0].y, (points[0].y - points[1].y) / 2, 0.2);
}

TEST(Plot, IsWellFormedWhateverTheTextsHold) {
  Random random(8, RandomUse::kTest);
  for (int round = 0; round < 1000; ++round) {
    std::string text;
    for (index i = random.below(30); i > 0; --i) {
      text += random.below(2) == 0 ? static_cast<char>(random.below(256))
                                   : "<>&\"'\0]]>"[random.below(9)];
    }
    Plot plot = loss_plot(example());
    plot.title = plot.subtitle = plot.x_label = plot.y_label = text;
    plot.curves[3].name = text;
    plot.ring->label = text;
    plot.curves[0].points.resize(3);
    plot.curves[1].points.resize(3);
    ASSERT_EQ(xml_error(draw_svg(plot)), "") << text;
  }
}

TEST(Plot, TellsTheMeansOfTheTrainingLossApart) {
  const std::string svg = draw_svg(loss_plot(example()));
  for (const char* name : {"train: last batch", "train: running mean",
                           "train: exact mean of interval", "validation"}) {
    EXPECT_THAT(svg, HasSubstr(std::string(">") + name + "</text>"));
  }
  // Each curve and its sample in the legend.
  for (const char* classes : {"faint blue", "dashed blue", "solid blue", "solid orange"}) {
    EXPECT_EQ(count(svg, std::string("class=\"curve ") + classes + "\""), 2) << classes;
  }
  EXPECT_EQ(count(svg, "class=\"dot orange\""), 4);
  EXPECT_THAT(svg, HasSubstr("<title>validation: 1.4 at 750 updates</title>"));
}

TEST(Plot, MarksTheBest) {
  const Plot plot = loss_plot(example());
  ASSERT_TRUE(plot.ring.has_value());
  EXPECT_EQ(plot.ring->point.x, 750);
  EXPECT_EQ(plot.ring->label, "best 1.4000");
  EXPECT_EQ(plot.subtitle, "validation loss of the best weights 1.4000, at update 750");
  const std::string svg = draw_svg(plot);
  EXPECT_EQ(count(svg, "class=\"ring\""), 1);
}

TEST(Plot, PutsTheRingsLabelWhereNoCurveRuns) {
  Plot plot{.title = "ring", .cuts_peaks = false};
  for (const double y : {0.0, 5.0, 10.0}) {
    plot.curves.push_back({.name = "flat", .points = {{0, y}, {100, y}}});
  }
  plot.ring = PlotRing{{50, 5}, "best"};
  const auto is_above = [&] {
    const std::string svg = draw_svg(plot);
    const auto number_before = [&](std::string_view name, std::size_t at) {
      return std::stod(svg.substr(svg.rfind(name, at) + name.size()));
    };
    return number_before(" y=\"", svg.find(">best</text>")) <
           number_before(" cy=\"", svg.find("class=\"ring\""));
  };
  EXPECT_TRUE(is_above());
  for (const double y : {5.2, 5.4, 5.6, 5.8, 6.0, 6.2, 6.4}) {
    plot.curves.push_back({.name = "above", .points = {{0, y}, {100, y}}});
  }
  EXPECT_FALSE(is_above());
}

TEST(Plot, PutsPointsWhereTheirValuesAre) {
  Plot plot{.title = "line"};
  plot.curves.push_back({.name = "a", .points = {{0, 0}, {50, 5}, {100, 10}}});
  const auto p = points_of(draw_svg(plot), "solid blue");
  ASSERT_EQ(p.size(), 3u);
  EXPECT_NEAR(p[1].x, (p[0].x + p[2].x) / 2, 0.11);
  EXPECT_NEAR(p[1].y, (p[0].y + p[2].y) / 2, 0.11);
  EXPECT_GT(p[0].y, p[2].y);  // y grows downwards in SVG
}

TEST(Plot, BreaksCurvesWhereNothingIsKnown) {
  Plot plot{.title = "gap"};
  plot.curves.push_back(
      {.name = "a", .points = {{0, 1}, {1, 2}, {2, NAN}, {3, 3}, {4, INFINITY}, {5, 1}}});
  const std::string svg = draw_svg(plot);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(points_of(svg, "solid blue").size(), 2u);
  EXPECT_EQ(count(svg, "h0"), 2);  // two points alone
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Plot, RunningMeansBeginAnewAfterEachInterval) {
  const Plot plot = loss_plot(example());
  int breaks = 0;
  for (const PlotPoint& p : plot.curves[1].points) breaks += std::isnan(p.y) ? 1 : 0;
  EXPECT_EQ(breaks, 3);  // four intervals
  EXPECT_EQ(plot.curves[1].points.size(), example().running_mean.size() + 3);
}

TEST(Plot, ThinsLongCurvesButKeepsTheirExtremes) {
  Plot plot{.title = "long"};
  plot.curves.push_back({.name = "noise", .stroke = Stroke::kFaint});
  Random random(3, RandomUse::kTest);
  for (int i = 0; i < 300000; ++i) {
    plot.curves[0].points.push_back({static_cast<double>(i), random.uniform(1, 2)});
  }
  plot.curves[0].points[123456].y = 5;
  plot.curves[0].points[200000].y = 0.1;
  const std::string svg = draw_svg(plot);
  EXPECT_LT(svg.size(), 400000u);
  double highest = 1e9, lowest = 0, last = -1;
  for (const PlotPoint& p : points_of(svg, "faint blue")) {
    highest = std::min(highest, p.y);
    lowest = std::max(lowest, p.y);
    ASSERT_GE(p.x, last);
    last = p.x;
  }
  // 5 % of air above and below: the extremes lie at 1/22 and 21/22 of the height.
  EXPECT_NEAR(highest, 104 + 304 / 22.0, 0.11);
  EXPECT_NEAR(lowest, 408 - 304 / 22.0, 0.11);
}

TEST(Plot, NoiseDoesNotFlattenTheCurves) {
  Plot plot{.title = "spike"};
  plot.curves.push_back(
      {.name = "noise", .points = {{0, 2}, {5, 1000}, {9, 2}}, .stroke = Stroke::kFaint});
  plot.curves.push_back({.name = "mean", .points = {{0, 2.5}, {5, 2.2}, {9, 2.1}}});
  EXPECT_THAT(draw_svg(plot), Not(HasSubstr(">1000</text>")));
  plot.curves[1].points.resize(1);
  EXPECT_THAT(draw_svg(plot), HasSubstr(">1000</text>"));
}

// As every run begins: a hundred updates from ln 280 down to 2.5, then 1900 down to 1.9.
LossCurves steep() {
  LossCurves losses;
  for (int i = 10; i <= 2000; i += 10) {
    const double x = i, loss = 1.9 + 0.6 * std::exp(-x / 700) + 3.1 * std::exp(-x / 60);
    losses.last_batch.push_back({x, loss});
    losses.running_mean.push_back({x, loss});
    if (i % 250 == 0) losses.validation.push_back({x, loss});
  }
  return losses;
}

TEST(Plot, TheFirstUpdatesDoNotRuleTheAxis) {
  const std::string svg = draw_svg(loss_plot(steep()));
  EXPECT_EQ(xml_error(svg), "");
  double high = 408;  // pixels from the top: the bottom of the plot
  for (const PlotPoint& p : points_of(svg, "dashed blue")) {
    if (p.x > 68 + (776 - 68) / 4.0) high = std::min(high, p.y);
  }
  EXPECT_LT(high, (104 + 408) / 2.0 + 10) << "three quarters of the run have half of the height";
  EXPECT_THAT(svg, HasSubstr("class=\"mark\""));
  EXPECT_THAT(svg, HasSubstr(">up to 5.116</text>"));
  // The label lies on none of the curves.
  std::smatch label;
  const std::regex text(
      R"re(<text x="([0-9.]+)" y="([0-9.]+)"[^>]*text-anchor="middle"[^>]*>up to)re");
  ASSERT_TRUE(std::regex_search(svg, label, text)) << svg;
  const double x = std::stod(label[1]), y = std::stod(label[2]), half = 35;
  for (const PlotPoint& p : points_of(svg, "dashed blue")) {
    EXPECT_FALSE(std::abs(p.x - x) < half && p.y > y - 11 && p.y < y + 4) << p.x << " " << p.y;
  }
}

TEST(Plot, ALongRunDoesNotHideAShortOne) {
  Plot plot{.title = "two runs"};
  plot.curves.push_back({.name = "short"});
  plot.curves.push_back({.name = "long"});
  for (int i = 0; i < 100; ++i) {
    plot.curves[0].points.push_back({1.0 * i, 8});
    plot.curves[1].points.push_back({100.0 * i, 0.5 + 0.1 * (i % 2)});
  }
  EXPECT_THAT(draw_svg(plot), Not(HasSubstr("class=\"mark\"")));
}

TEST(Plot, NothingIsCutOffThatFits) {
  Plot plot{.title = "rises"};
  plot.curves.push_back({.name = "a"});
  for (int i = 0; i < 100; ++i) plot.curves[0].points.push_back({1.0 * i, 1 + 0.1 * i});
  EXPECT_THAT(draw_svg(plot), Not(HasSubstr("class=\"mark\"")));
  plot.curves[0].points[90].y = 1000;  // late: it counts
  EXPECT_THAT(draw_svg(plot), HasSubstr(">1000</text>"));
  EXPECT_THAT(draw_svg(plot), Not(HasSubstr("class=\"mark\"")));
  for (index i = 0; i < 100; ++i) plot.curves[0].points[static_cast<std::size_t>(i)].y = 1;
  plot.curves[0].points[99].y = 2;
  plot.curves[0].points[0].y = 3.4;  // hardly higher than twice the rest
  EXPECT_THAT(draw_svg(plot), Not(HasSubstr("class=\"mark\"")));
  plot.curves[0].points[0].y = 3.6;
  EXPECT_THAT(draw_svg(plot), HasSubstr("class=\"mark\""));
}

TEST(Plot, BearsAnyData) {
  const double odd[] = {0,      -0.0,    1,   -1,       1e-300,    1e300,
                        -1e300, 1.7e308, NAN, INFINITY, -INFINITY, 5e-324};
  Random random(12, RandomUse::kTest);
  for (int round = 0; round < 3000; ++round) {
    Plot plot{.title = "odd"};
    Curve curve{.name = "c", .stroke = random.below(2) == 0 ? Stroke::kSolid : Stroke::kFaint};
    for (index i = random.below(5); i > 0; --i)
      curve.points.push_back({odd[random.below(12)], odd[random.below(12)]});
    plot.curves = {curve};
    plot.ring = PlotRing{{odd[random.below(12)], odd[random.below(12)]}, "ring"};
    const std::string svg = draw_svg(plot);
    ASSERT_EQ(xml_error(svg), "");
    ASSERT_EQ(svg.find("nan"), svg.npos);
    ASSERT_EQ(svg.find("\"inf"), svg.npos);
  }
  EXPECT_THAT(draw_svg(loss_plot({})), HasSubstr("nothing measured yet"));
}

TEST(PlotStyle, EveryInkHasAColourOnBothGrounds) {
  for (int n = 0; n <= static_cast<int>(Ink::kRun7); ++n) {
    const std::string rule = "." + std::string(class_of(static_cast<Ink>(n))) + "{stroke:#";
    EXPECT_NE(plot_rules().find(rule), std::string_view::npos) << rule;
    EXPECT_NE(plot_dark_rules().find(rule), std::string_view::npos) << rule;
  }
  for (const Stroke stroke :
       {Stroke::kFaint, Stroke::kThin, Stroke::kDashed, Stroke::kDotted, Stroke::kSolid}) {
    EXPECT_NE(plot_rules().find("." + std::string(class_of(stroke)) + "{"), std::string_view::npos);
  }
}

TEST(PlotStyle, TwentyFourRunsCanBeToldApart) {
  std::set<std::pair<Ink, Stroke>> seen;
  for (std::size_t n = 0; n < 24; ++n) seen.insert({ink_of_run(n), stroke_of_run(n)});
  EXPECT_EQ(seen.size(), 24u);
  EXPECT_EQ(ink_of_run(1000), ink_of_run(0));
}

PlotPoint same(const PlotPoint& point) { return point; }

using Points = std::vector<PlotPoint>;
constexpr PixelBox kArea = {{0, 0}, {200, 200}};

// The place of a label of 80 pixels beside a ring at (100, 100).
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
