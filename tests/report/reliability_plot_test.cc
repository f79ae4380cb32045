// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/report/mistake_plots.h"
#include "tests/report/xml.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

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
