// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/mistake_plots.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "tests/report/xml.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

int count(const std::string& text, std::string_view part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

ConfusionPlot diagonal(index K, std::string name) {
  ConfusionPlot plot{.title = "confusion"};
  for (index k = 0; k < K; ++k) {
    plot.labels.push_back(name + std::to_string(k));
    for (index p = 0; p < K; ++p) plot.counts.push_back(k == p ? 30 : 0);
  }
  return plot;
}

TEST(ConfusionPlot, DrawsCellsThatAreNotEmpty) {
  const ConfusionPlot plot{
      .title = "三类", .labels = {"好评", "差评", "<中>"}, .counts = {90, 10, 0, 1, 3, 0, 0, 0, 0}};
  const std::string svg = draw_confusion(plot);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(count(svg, "class=\"right\""), 2);
  EXPECT_EQ(count(svg, "class=\"wrong\""), 2);
  EXPECT_THAT(svg, HasSubstr("class=\"right\" fill-opacity=\"0.90\"><title>好评 predicted as 好评: "
                             "90 of 100 (90.0 %)</title>"));
  EXPECT_THAT(svg, HasSubstr("class=\"wrong\" fill-opacity=\"0.25\"><title>差评 predicted as 好评: "
                             "1 of 4 (25.0 %)</title>"));
  EXPECT_THAT(svg, HasSubstr(">0.900</text>"));  // recall
  EXPECT_THAT(svg, HasSubstr(">-</text>"));      // of a class without examples
  EXPECT_THAT(svg, HasSubstr("&lt;中&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("rotate(-45")));  // short names are not slanted
  EXPECT_EQ(svg, draw_confusion(plot));
}

TEST(ConfusionPlot, IsWellFormedWhateverTheNamesHold) {
  ConfusionPlot plot = diagonal(3, "\xFF<&\"\x01]]>'");
  plot.title = plot.subtitle = plot.labels[0];
  EXPECT_EQ(xml_error(draw_confusion(plot)), "");
}

TEST(ConfusionPlot, LongNamesAreCutAndWholeInTooltips) {
  const std::string name(80, 'x');
  const std::string svg = draw_confusion(diagonal(2, name));
  EXPECT_THAT(svg, HasSubstr(">xxxxxxxxxxxxxxxxxxxxx...</text>"));
  EXPECT_THAT(svg, HasSubstr("rotate(-45"));
  EXPECT_THAT(svg, HasSubstr(name + "0 predicted as"));
}

// Each number is at least 6 pixels high and inside its cell.
TEST(ConfusionPlot, NumbersFitIntoTheirCells) {
  for (const index K : {1, 10, 50, 60}) {
    ConfusionPlot plot = diagonal(K, "类别");
    for (const index n : {7, 999, 9999, 123456, 99999999}) {
      plot.counts[0] = n;
      const std::string svg = draw_confusion(plot);
      const std::size_t number = svg.find("class=\"strong\"");
      ASSERT_NE(number, svg.npos) << K;
      const double cell =
          std::atof(svg.c_str() + svg.find("width=\"", svg.find("class=\"frame\"") - 60) + 7) /
          static_cast<double>(K);
      const double size = std::atof(svg.c_str() + svg.rfind("font-size:", number) + 10);
      const std::size_t begin = svg.find('>', number) + 1;
      const auto characters = static_cast<double>(svg.find('<', begin) - begin);
      EXPECT_GE(size, 6) << K << ' ' << n;
      EXPECT_LE(0.6 * size * characters, cell) << K << ' ' << n;
    }
  }
}

TEST(ConfusionPlot, ManyClassesAreDrawnWithoutNumbers) {
  const std::string svg = draw_confusion(diagonal(kMostConfusionClasses, "c"));
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(count(svg, "class=\"right\""), 200);
  EXPECT_EQ(count(svg, "class=\"strong\""), 0);
}

TEST(ConfusionPlot, RefusesWhatIsNoMatrix) {
  EXPECT_THROWS(draw_confusion({.title = "none"}), kShape,
                "draw_confusion: there are 0 classes; it draws 1 to 200");
  EXPECT_THROWS(draw_confusion(diagonal(201, "c")), kShape, "there are 201 classes");
  EXPECT_THROWS(draw_confusion({.title = "", .labels = {"a", "b"}, .counts = {1, 2, 3}}), kShape,
                "there are 3 counts for 2 classes; there must be 4");
  EXPECT_THROWS(draw_confusion({.title = "", .labels = {"a"}, .counts = {-1}}), kShape,
                "a count is -1");
}

ReliabilityPlot example() {
  return {.title = "test.txt",
          .subtitle = "expected calibration error 0.05",
          .bars = {{0, 0.25, 0, 0, 0}, {0.25, 0.5, 40, 0.4, 0.5}, {0.5, 1, 10, 0.75, 0.6}}};
}

TEST(ReliabilityPlot, DrawsABarForEachBinThatHasPredictions) {
  const std::string svg = draw_reliability(example());
  EXPECT_EQ(xml_error(svg), "");
  // Side by side: from 68 + 428 / 4 + 1 on, of 336 pixels .4 and .5.
  EXPECT_THAT(svg, HasSubstr("<title>0.25 to 0.5: 40 predictions, confidence 0.4000, accuracy "
                             "0.5000</title>\n"
                             "<rect x=\"176\" y=\"305.6\" width=\"52.5\" height=\"134.4\" "
                             "class=\"confidence\"/>\n"
                             "<rect x=\"228.5\" y=\"272\" width=\"52.5\" height=\"168\" "
                             "class=\"accuracy\"/>\n"
                             "<rect x=\"176\" y=\"462\" width=\"105\" height=\"74\" "
                             "class=\"count\"/>\n"));
  EXPECT_THAT(svg, HasSubstr(">mean confidence</text>"));
  EXPECT_THAT(svg, HasSubstr("height=\"18.5\" class=\"count\"/>"));  // a quarter as many
  EXPECT_THAT(svg, Not(HasSubstr("0 to 0.25:")));
  EXPECT_EQ(svg, draw_reliability(example()));
}

TEST(ReliabilityPlot, TextsAreEscaped) {
  ReliabilityPlot plot = example();
  plot.title = plot.subtitle = plot.x_label = plot.y_label = "<情感> & \"x\"\x01";
  const std::string svg = draw_reliability(plot);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_THAT(svg, HasSubstr("&lt;情感&gt; &amp; &quot;x&quot;"));
}

TEST(ReliabilityPlot, WithoutPredictionsSaysSo) {
  for (ReliabilityPlot plot : {ReliabilityPlot{.title = "none"}, example()}) {
    for (ReliabilityBar& bar : plot.bars) bar.count = 0;
    EXPECT_THAT(draw_reliability(plot), HasSubstr("nothing measured yet"));
    EXPECT_EQ(xml_error(draw_reliability(plot)), "");
  }
}

TEST(ReliabilityPlot, RefusesWhatIsNoShare) {
  const ReliabilityBar bad[] = {{0, 0.5, 1, NAN, 0},
                                {0, 0.5, 1, 0, 1.5},
                                {0.5, 0.5, 1, 0, 0},
                                {0, 2, 1, 0, 0},
                                {0, 0.5, -1, 0, 0}};
  for (const ReliabilityBar& bar : bad) {
    ReliabilityPlot plot = example();
    plot.bars.push_back(bar);
    EXPECT_THROWS(draw_reliability(plot), kShape, "draw_reliability: the bar from");
  }
}

}  // namespace
}  // namespace fovea
