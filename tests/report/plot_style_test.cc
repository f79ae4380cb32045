// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "fovea/report/plot.h"

namespace fovea {
namespace {

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

}  // namespace
}  // namespace fovea
