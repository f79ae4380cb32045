// SPDX-License-Identifier: Apache-2.0
// Plots of characters, for terminals: a matrix of weights, the losses of a run, its learning curve.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/run_report.h"
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

struct TerminalPlotOptions {
  index columns = 80;                              ///< of the terminal; at least 40 are used
  bool unicode = false;                            ///< braille dots and lines, not only ASCII
  PageLanguage language = PageLanguage::kEnglish;  ///< Chinese only with `unicode`
};

/// The running mean of the training loss as a line of dots, the validation losses as o, that of the
/// best weights as @, with axes, their units and a legend, and the loss of the last batch and the
/// mean of the last 16. It needs no colour. It is cut off at the top as in draw_svg(), and the
/// legend says so. Names are printed as they are.
std::string terminal_losses(const RunReport& run, const TerminalPlotOptions& options);

/// One curve: its points as o with a line between them, with axes; `x_name` names the lower one.
std::string terminal_curve(const std::string& heading, const std::vector<PlotPoint>& points,
                           const std::string& x_name, const TerminalPlotOptions& options);

/// The learning curve of a run: the first of its curves as a picture, all numbers, the advice.
std::string terminal_learning(const RunReport& run, const TerminalPlotOptions& options);

}  // namespace fovea
