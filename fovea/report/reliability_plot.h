// SPDX-License-Identifier: Apache-2.0
// Draws how often predictions are right against how confident they are.
#pragma once

#include <string>
#include <vector>

#include "fovea/base/types.h"

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
};

/// A bar for the accuracy of each bin, the gap to its confidence, the diagonal of perfect
/// calibration, and below it the number of predictions of each bin. One self-contained file, as
/// draw_svg() makes. Throws Error(kShape) if the numbers of a bar are not finite or outside of [0,
/// 1], or its count is negative.
std::string draw_reliability(const ReliabilityPlot& plot);

}  // namespace fovea
