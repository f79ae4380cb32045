// SPDX-License-Identifier: Apache-2.0
// Draws which classes are taken for which.
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

}  // namespace fovea
