// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/terminal_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fovea/report/axis.h"
#include "fovea/report/terminal.h"

namespace fovea {

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

std::string spaces(index count) {
  return std::string(static_cast<std::size_t>(std::max<index>(0, count)), ' ');
}

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

}  // namespace fovea
