// SPDX-License-Identifier: Apache-2.0
// Draws how often predictions are right against how confident they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/html.h"

namespace fovea {

/// The predictions with a confidence from low to high.
struct ReliabilityBar {
  double low, high;
  index count;
  double confidence;  ///< mean
  double accuracy;    ///< share of those that are right
};

struct ReliabilityPlot {
  std::string title;
  std::string subtitle = {};  ///< such as the expected calibration error
  std::string x_label = "confidence";
  std::string y_label = "accuracy";
  std::vector<ReliabilityBar> bars = {};
  PageLanguage language = PageLanguage::kEnglish;  ///< of the other words
};

/// Draws two bars for each bin, its mean confidence and its accuracy, the diagonal of perfect
/// calibration, and below it the number of predictions of each bin. One self-contained file, as
/// draw_svg() makes. Throws Error(kShape) if the numbers of a bar are not finite or outside of [0,
/// 1], or its count is negative.
std::string draw_reliability(const ReliabilityPlot& plot);

/// Draws the plot without its title, inside an HTML page whose style has reliability_rules().
std::string draw_inline(const ReliabilityPlot& plot);
std::string_view reliability_rules();
std::string_view reliability_dark_rules();

}  // namespace fovea
