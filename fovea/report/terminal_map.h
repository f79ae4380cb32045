// SPDX-License-Identifier: Apache-2.0
// Draws a matrix of weights as text: which row looks at which column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/terminal.h"

namespace fovea {

/// Which numbers beside rows have a sign.
enum class SideSign : std::uint8_t { kAlways, kNegative };

/// Names are UTF-8 without control characters.
struct TerminalMap {
  std::vector<std::string> rows = {};     ///< names
  std::vector<std::string> columns = {};  ///< names, written downwards
  std::vector<float> values = {};         ///< [rows, columns]; exactly 0 stays blank
  double largest = 0;                     ///< the value of the strongest shade
  index first_row = 1, first_column = 1;  ///< their numbers
  std::vector<float> side = {};           ///< [rows] a number with a bar beside each row, or none
  double largest_side = 0;                ///< of the longest bar
  std::string side_name = {};
  SideSign side_sign = SideSign::kAlways;
};

/// Columns of a row's name, at most.
inline constexpr index kMapNameColumns = 12;

/// How many columns of such a map a terminal of so many columns can show, at least 1; `rows` is the
/// largest number of a row, `name_columns` the widest name that a row may have.
index most_map_columns(index terminal_columns, index rows, bool has_side,
                       index name_columns = kMapNameColumns);

/// Lines with their ends: names downwards, a line for each row, the scale. A cell is two columns
/// wide: with colour a background of 256, else a block of Unicode or ASCII. Negative values are
/// red, or "--".
std::string draw_terminal_map(const TerminalMap& map, const Terminal& terminal);

}  // namespace fovea
