// SPDX-License-Identifier: Apache-2.0
// The mistakes of a model: which classes are taken for which, and how often it is right against
// how confident it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/html.h"

namespace fovea {

struct ConfusionPlot {
  std::string title;
  std::string subtitle = {};
  std::vector<std::string> labels = {};  ///< [K]: names of the classes
  std::vector<index> counts = {};        ///< [K, K]: rows are true classes, columns predicted ones
  PageLanguage language = PageLanguage::kEnglish;  ///< of the words beside the matrix
};

inline constexpr index kMostConfusionClasses = 200;

/// A matrix with the count in each cell, shaded by its share of the row: blue on the diagonal,
/// orange beside it. At the right of a row, its recall and its number of examples. Beyond 60
/// classes the cells have no numbers; every cell that is not empty has a tooltip. Long names are
/// cut. One self-contained file, as draw_svg() makes.
///
/// Throws Error(kShape) unless there are 1 to 200 labels, and K^2 counts >= 0.
std::string draw_confusion(const ConfusionPlot& plot);

/// Draws the plot without its title, inside an HTML page whose style has confusion_rules().
std::string draw_inline(const ConfusionPlot& plot);
std::string_view confusion_rules();
std::string_view confusion_dark_rules();

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
