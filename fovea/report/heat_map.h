// SPDX-License-Identifier: Apache-2.0
// Draws a matrix of weights: which row looks at which column.
#pragma once

#include <string>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

struct HeatMap {
  std::string title;
  std::string subtitle = {};
  std::vector<std::string> rows = {};     ///< names, such as those of heads
  std::vector<std::string> columns = {};  ///< names, such as the words of a text
  std::vector<double> values = {};        ///< [rows, columns], >= 0 and finite
};

/// The most rows, and the most columns.
inline constexpr index kMostHeatMapNames = 512;

/// A cell is shaded by its share of the largest value; a tooltip says the exact value. Names of
/// columns stand below them: single characters and Chinese words upright, others turned by 90
/// degrees; long names are cut. One self-contained file, as draw_svg() makes.
///
/// Throws Error(kShape) unless there are 1 to 512 rows and columns, and rows x columns values that
/// are finite and not negative.
std::string draw_heat_map(const HeatMap& map);

}  // namespace fovea
