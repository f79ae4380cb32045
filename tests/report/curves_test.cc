// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/curves.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
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

}  // namespace
}  // namespace fovea
