// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/terminal_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fovea/base/check.h"
#include "fovea/report/places.h"

namespace fovea {

namespace {

constexpr index kNameLines = 7;  // of a column's name
constexpr index kCell = 2;       // columns
constexpr index kSide = 20;      // columns: two spaces, a number of 8, a space, the bar
constexpr index kBar = 9;
constexpr std::string_view kPlain = "\x1b[0m";

// Twelve of the 256 colours: from a dark blue to yellow, ever lighter. Both ends differ from a
// black and from a white ground.
constexpr std::array kHeat = {18, 19, 25, 31, 37, 36, 35, 71, 107, 148, 184, 220};
constexpr std::array kNegative = {52, 88, 124, 160, 196};
constexpr std::array<std::string_view, 5> kBlocks = {"\u00b7", "\u2591", "\u2592", "\u2593",
                                                     "\u2588"};
constexpr std::array<std::string_view, 8> kLetters = {".", ":", "=", "+", "*", "#", "%", "@"};
constexpr std::array<std::string_view, 8> kEighths = {"",       "\u258f", "\u258e", "\u258d",
                                                      "\u258c", "\u258b", "\u258a", "\u2589"};

index digits_of(index number) { return static_cast<index>(fmt::format("{}", number).size()); }

std::string spaces(index columns) {
  return std::string(static_cast<std::size_t>(std::max<index>(0, columns)), ' ');
}

std::string padded(std::string_view text, index columns) {
  const std::string cut = fit_columns(text, columns);
  return cut + spaces(columns - display_width(cut));
}

index widest_name(const std::vector<std::string>& names) {
  index widest = 1;
  for (const std::string& name : names) widest = std::max(widest, display_width(name));
  return std::min(widest, kMapNameColumns);
}

std::size_t level_of(double share, std::size_t levels) {
  const double at = std::floor(share * static_cast<double>(levels));
  return std::min(levels - 1, static_cast<std::size_t>(std::max(0.0, at)));
}

// A cell of a value that is not 0, by the root of its share of the largest.
std::string cell(double share, bool negative, const Terminal& terminal) {
  if (terminal.color) {
    const int color = negative ? kNegative[level_of(share, kNegative.size())]
                               : kHeat[level_of(share, kHeat.size())];
    return fmt::format("\x1b[48;5;{}m  {}", color, kPlain);
  }
  if (negative) return "--";
  const std::string_view glyph = terminal.unicode ? kBlocks[level_of(share, kBlocks.size())]
                                                  : kLetters[level_of(share, kLetters.size())];
  return std::string(glyph) + std::string(glyph);
}

std::string cell_of(float value, double largest, const Terminal& terminal) {
  if (value == 0) return spaces(kCell);
  // By the square root, or every row but the first ones of a causal map would be dark.
  const double share = largest > 0 ? std::sqrt(std::abs(double{value}) / largest) : 0;
  return cell(share, value < 0, terminal);
}

// The glyphs of a column's name, of which at most kNameLines are shown.
std::vector<std::string> letters_of(const std::string& name, const Terminal& terminal) {
  std::vector<std::string> glyphs = glyphs_of(name);
  if (glyphs.size() <= static_cast<std::size_t>(kNameLines)) return glyphs;
  glyphs.resize(static_cast<std::size_t>(kNameLines) - 1);
  glyphs.emplace_back(terminal.unicode ? "\u2026" : ":");
  return glyphs;
}

// Lines of names that end just above the cells.
std::string names_downwards(const TerminalMap& map, index left, const Terminal& terminal) {
  std::vector<std::vector<std::string>> names;
  std::size_t lines = 0;
  for (const std::string& name : map.columns) {
    names.push_back(letters_of(name, terminal));
    lines = std::max(lines, names.back().size());
  }
  if (lines == 0 && !map.side.empty()) return spaces(left) + "  " + map.side_name + "\n";
  std::string text;
  for (std::size_t line = 0; line < lines; ++line) {
    std::string row = spaces(left);
    for (const auto& name : names) {
      const std::size_t above = lines - name.size();
      row += line < above ? spaces(kCell) : padded(name[line - above], kCell);
    }
    if (line + 1 == lines && !map.side.empty()) row += "  " + map.side_name;
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

// A bar in eighths of a column.
std::string bar_of(double share, const Terminal& terminal) {
  const auto eighths =
      static_cast<index>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(8 * kBar)));
  std::string bar;
  if (!terminal.unicode) return std::string(static_cast<std::size_t>((eighths + 4) / 8), '#');
  for (index n = 0; n < eighths / 8; ++n) bar += "\u2588";
  return bar + std::string(kEighths[static_cast<std::size_t>(eighths % 8)]);
}

std::string number_beside(float value, double largest, SideSign sign) {
  const bool is_far = largest > 0 && (largest < 1e-3 || largest >= 1e4);
  const std::string number = is_far ? fmt::format("{:+.1e}", value)
                                    : fmt::format("{:+.{}f}", value, places_for(largest, 5));
  return sign == SideSign::kNegative && number.starts_with('+') ? number.substr(1) : number;
}

std::string side_of(const TerminalMap& map, std::size_t row, const Terminal& terminal) {
  const float value = map.side[row];
  const double largest = map.largest_side;
  const std::string bar = bar_of(largest > 0 ? std::abs(double{value}) / largest : 0, terminal);
  const std::string number = fmt::format("  {:>8} ", number_beside(value, largest, map.side_sign));
  if (!terminal.color || bar.empty()) return number + bar;
  return fmt::format("{}\x1b[38;5;{}m{}{}", number, value < 0 ? 160 : 37, bar, kPlain);
}

std::string scale_of(const TerminalMap& map, index left, const Terminal& terminal) {
  const std::size_t levels = terminal.color     ? kHeat.size()
                             : terminal.unicode ? kBlocks.size()
                                                : kLetters.size();
  std::string text = spaces(left) + "0 ";
  for (std::size_t n = 0; n < levels; ++n) {
    text += cell((static_cast<double>(n) + 0.5) / static_cast<double>(levels), false, terminal);
  }
  return text + fmt::format(" {:.3g} (shaded by the square root)\n", map.largest);
}

void check_map(const TerminalMap& map) {
  check(map.values.size() == map.rows.size() * map.columns.size(),
        "draw_terminal_map: {} values for {} rows and {} columns", map.values.size(),
        map.rows.size(), map.columns.size());
  check(map.side.empty() || map.side.size() == map.rows.size(),
        "draw_terminal_map: {} numbers beside {} rows", map.side.size(), map.rows.size());
}

}  // namespace

index most_map_columns(index terminal_columns, index rows, bool has_side, index name_columns) {
  const index left = digits_of(rows) + 1 + name_columns + 1;
  return std::max<index>(1, (terminal_columns - left - (has_side ? kSide : 0)) / kCell);
}

std::string draw_terminal_map(const TerminalMap& map, const Terminal& terminal) {
  check_map(map);
  const auto R = static_cast<index>(map.rows.size()), C = static_cast<index>(map.columns.size());
  const index digits = digits_of(map.first_row + R - 1), name = widest_name(map.rows);
  const index left = digits + 1 + name + 1;
  std::string text = names_downwards(map, left, terminal);
  for (index r = 0; r < R; ++r) {
    const auto at = static_cast<std::size_t>(r);
    std::string row =
        fmt::format("{:>{}} {} ", map.first_row + r, digits, padded(map.rows[at], name));
    for (index c = 0; c < C; ++c) {
      row += cell_of(map.values[static_cast<std::size_t>(r * C + c)], map.largest, terminal);
    }
    if (!map.side.empty()) row += side_of(map, at, terminal);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return C == 0 ? text : text + scale_of(map, left, terminal);
}

}  // namespace fovea
