// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/terminal_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/report/numbers.h"
#include "fovea/report/run_figures.h"
#include "fovea/report/terminal.h"

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

namespace {

constexpr index kRows = 15;  // of the picture without its axis
constexpr index kFewestColumns = 40;

constexpr Phrase kHeading = {"{}: loss, {}", "{}：损失，{}"};
constexpr Phrase kUpdates = {"updates", "更新次数"};
constexpr Phrase kTraining = {"training, running mean of the interval so far",
                              "训练，区间内至今的运行平均"};
constexpr Phrase kValidation = {"validation, whole set", "验证，整个验证集"};
constexpr Phrase kBest = {"best weights: {:.4f} at update {:.0f}",
                          "最佳权重：{:.4f}，第 {:.0f} 次更新"};
constexpr Phrase kAbove = {"cut off at the top: up to {}", "顶部已截断：最高 {}"};
constexpr Phrase kLast = {"update {:.0f}: its batch {:.4f}, mean of the last {} {:.4f}",
                          "第 {:.0f} 次更新：该批 {:.4f}，最近 {} 次的平均 {:.4f}"};
constexpr Phrase kNothing = {"nothing measured yet", "尚无测量值"};

// The characters of a picture: lines of dots, a character over them here and there.
class Canvas {
 public:
  Canvas(index columns, bool unicode)
      : columns_(columns),
        unicode_(unicode),
        dots_(static_cast<std::size_t>(columns * kRows)),
        marks_(dots_.size(), ' ') {}

  // Dots of a cell: 2 x 4 of a braille character, or one.
  index wide() const { return columns_ * (unicode_ ? 2 : 1); }
  index high() const { return kRows * (unicode_ ? 4 : 1); }

  // From one place to another, in dots from the left and from the top; outside nothing is drawn.
  void line(PlotPoint a, PlotPoint b) {
    const double steps = std::max({std::abs(b.x - a.x), std::abs(b.y - a.y), 1.0});
    for (double n = 0; n <= steps; ++n) {
      dot(std::lround(a.x + n / steps * (b.x - a.x)), std::lround(a.y + n / steps * (b.y - a.y)));
    }
  }

  void mark(PlotPoint at, char character) {
    const index x = std::lround(at.x), y = std::lround(at.y);
    if (is_inside(x, y)) marks_[cell(x, y)] = character;
  }

  std::string row(index r) const {
    std::string text;
    for (index c = 0; c < columns_; ++c) {
      const auto at = static_cast<std::size_t>(r * columns_ + c);
      if (marks_[at] != ' ' || dots_[at] == 0) {
        text += marks_[at];
      } else if (unicode_) {
        // U+2800 and the bits of its dots, as UTF-8.
        text += {'\xE2', static_cast<char>(0xA0 | dots_[at] >> 6),
                 static_cast<char>(0x80 | (dots_[at] & 0x3F))};
      } else {
        text += '.';
      }
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  bool is_inside(index x, index y) const { return x >= 0 && x < wide() && y >= 0 && y < high(); }
  std::size_t cell(index x, index y) const {
    return static_cast<std::size_t>(unicode_ ? y / 4 * columns_ + x / 2 : y * columns_ + x);
  }
  void dot(index x, index y) {
    constexpr std::uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (is_inside(x, y)) dots_[cell(x, y)] |= unicode_ ? kBits[y % 4][x % 2] : 1;
  }

  index columns_;
  bool unicode_;
  std::vector<std::uint8_t> dots_;
  std::vector<char> marks_;
};

// From values to dots of the canvas, and to its rows and columns.
struct Scale {
  PlotRange range;
  index wide, high;

  PlotPoint dot(PlotPoint p) const {
    return {(p.x - range.x_low) / (range.x_high - range.x_low) * static_cast<double>(wide - 1),
            (range.y_high - p.y) / (range.y_high - range.y_low) * static_cast<double>(high - 1)};
  }
};

void draw(const RunReport& run, const Plot& plot, const Scale& scale, Canvas& canvas) {
  if (!plot.curves.empty() && !run.losses.running_mean.empty()) {
    const PlotPoint* before = nullptr;
    for (const PlotPoint& p : plot.curves.front().points) {
      if (std::isfinite(p.y)) {
        const PlotPoint at = scale.dot(p);
        canvas.line(before == nullptr ? at : scale.dot(*before), at);
      }
      before = std::isfinite(p.y) ? &p : nullptr;
    }
  }
  for (const PlotPoint& p : run.losses.validation) {
    if (std::isfinite(p.y)) canvas.mark(scale.dot(p), 'o');
  }
  if (plot.ring) canvas.mark(scale.dot(plot.ring->point), '@');
}

// The picture with the names of its ticks: those of losses before the rows, those of updates below.
std::string with_axes(const Scale& scale, const Canvas& canvas, index columns, bool unicode) {
  const auto wide = static_cast<index>(canvas.wide() / (unicode ? 2 : 1));
  std::vector<std::string> names(static_cast<std::size_t>(kRows));
  const Scale cells{scale.range, wide, kRows};
  for (const Tick& tick : axis_ticks(scale.range.y_low, scale.range.y_high, 5)) {
    const double row = cells.dot({scale.range.x_low, tick.value}).y;
    names[static_cast<std::size_t>(std::lround(row))] = tick.label;
  }
  const index left = columns - wide - 2;
  std::string text;
  for (index r = 0; r < kRows; ++r) {
    const std::string& name = names[static_cast<std::size_t>(r)];
    const std::string_view side = name.empty() ? (unicode ? "│" : "|") : (unicode ? "┤" : "+");
    const std::string row = canvas.row(r);
    text += spaces(left - static_cast<index>(name.size())) + name + " " + std::string(side) + row +
            "\n";
  }
  std::string below;
  std::vector<bool> ticks(static_cast<std::size_t>(wide));
  for (const Tick& tick :
       axis_ticks(scale.range.x_low, scale.range.x_high, static_cast<int>(wide / 12 + 2))) {
    const index column = std::lround(cells.dot({tick.value, scale.range.y_low}).x);
    const auto size = static_cast<index>(tick.label.size());
    const index begin = std::min(left + 2 + column - size / 2, columns - size);
    if (begin <= static_cast<index>(below.size()) && !below.empty()) continue;
    below += spaces(begin - static_cast<index>(below.size())) + tick.label;
    ticks[static_cast<std::size_t>(column)] = true;
  }
  text += spaces(left + 1) + (unicode ? "└" : "+");
  for (const bool tick : ticks) text += tick ? (unicode ? "┬" : "+") : (unicode ? "─" : "-");
  return text + "\n" + below + "\n";
}

// The widest name of a tick on the axis of losses.
index widest_tick(const PlotRange& range) {
  std::size_t widest = 1;
  for (const Tick& tick : axis_ticks(range.y_low, range.y_high, 5)) {
    widest = std::max(widest, tick.label.size());
  }
  return static_cast<index>(widest);
}

double highest(const Plot& plot) {
  double high = -std::numeric_limits<double>::infinity();
  for (const Curve& curve : plot.curves) {
    for (const PlotPoint& p : curve.points) {
      if (std::isfinite(p.y)) high = std::max(high, p.y);
    }
  }
  return high;
}

}  // namespace

std::string terminal_losses(const RunReport& run, const TerminalPlotOptions& options) {
  const PageLanguage language = options.unicode ? options.language : PageLanguage::kEnglish;
  const auto say = [&](const Phrase& phrase, auto... values) {
    return fmt::format(fmt::runtime(phrase.in(language)), values...);
  };
  const LossCurves& losses = run.losses;
  Plot plot = loss_plot({.validation = losses.validation, .best = losses.best});
  if (!losses.running_mean.empty()) {
    plot.curves.insert(
        plot.curves.begin(),
        {.name = "", .points = broken_after(losses.running_mean, losses.interval_mean)});
  }
  std::string text = say(kHeading, run.name, run.unit.in(language)) + "\n";
  if (losses.running_mean.empty() && losses.validation.empty()) {
    return text + std::string(kNothing.in(language)) + "\n";
  }
  const PlotRange range = plot_range(plot);
  const index columns = std::max(options.columns, kFewestColumns);
  Canvas canvas(columns - widest_tick(range) - 2, options.unicode);
  const Scale scale{range, canvas.wide(), canvas.high()};
  draw(run, plot, scale, canvas);
  text += with_axes(scale, canvas, columns, options.unicode);
  const std::string name(kUpdates.in(language));
  text += spaces(columns - display_width(name)) + name + "\n";
  const auto legend = [&](std::string_view mark, const std::string& what) {
    text += fmt::format("{} {}\n", mark, what);
  };
  if (!losses.running_mean.empty()) legend(options.unicode ? "⠤⠤" : "..", say(kTraining));
  if (!losses.validation.empty()) legend(" o", say(kValidation));
  if (plot.ring) legend(" @", say(kBest, plot.ring->point.y, plot.ring->point.x));
  if (highest(plot) > range.y_high) {
    legend(" ^", say(kAbove, short_number(highest(plot))));
  }
  if (!losses.last16_mean.empty() && !losses.last_batch.empty()) {
    const PlotPoint last = losses.last16_mean.back();
    text += say(kLast, last.x, losses.last_batch.back().y, std::min(last.x, 16.0), last.y) + "\n";
  }
  return text;
}

std::string terminal_curve(const std::string& heading, const std::vector<PlotPoint>& points,
                           const std::string& x_name, const TerminalPlotOptions& options) {
  Plot plot{.title = "", .cuts_peaks = false};
  plot.curves.push_back({.name = "", .points = points});
  const PlotRange range = plot_range(plot);
  const index columns = std::max(options.columns, kFewestColumns);
  Canvas canvas(columns - widest_tick(range) - 2, options.unicode);
  const Scale scale{range, canvas.wide(), canvas.high()};
  for (std::size_t n = 0; n < points.size(); ++n) {
    const PlotPoint at = scale.dot(points[n]);
    canvas.line(n == 0 ? at : scale.dot(points[n - 1]), at);
    canvas.mark(at, 'o');
  }
  return heading + "\n" + with_axes(scale, canvas, columns, options.unicode) +
         spaces(columns - display_width(x_name)) + x_name + "\n";
}

std::string terminal_learning(const RunReport& run, const TerminalPlotOptions& options) {
  const PageLanguage language = options.unicode ? options.language : PageLanguage::kEnglish;
  const std::vector<Curve> curves = learning_curves(run, language);
  std::string text;
  if (!curves.empty()) {
    text =
        terminal_curve(fmt::format("{}: {}", run.name, curves.front().name), curves.front().points,
                       std::string(kTextsToTrainOn.in(language)), options);
  }
  for (const ReportLearning& point : run.learning) {
    text += fmt::format("{:>8}", point.rows);
    for (const ReportNumber& number : point.numbers) {
      text += fmt::format("  {} {:.4f} ({:.4f} to {:.4f})", number.name, number.value, number.low,
                          number.high);
    }
    text += "\n";
  }
  return text + learning_advice(run.learning, language) + "\n";
}

}  // namespace fovea
