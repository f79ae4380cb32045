// SPDX-License-Identifier: Apache-2.0
// Draws curves as SVG: one self-contained file, readable on a light and on a dark background.
// How curves look: colours and strokes, as CSS classes.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/report/html.h"

namespace fovea {

/// kShade0 to kShade5 are for what has an order, such as layers; kRun0 to kRun7 for what has none,
/// such as runs side by side.
enum class Ink {
  kBlue,
  kOrange,
  kShade0,
  kShade1,
  kShade2,
  kShade3,
  kShade4,
  kShade5,
  kRun0,
  kRun1,
  kRun2,
  kRun3,
  kRun4,
  kRun5,
  kRun6,
  kRun7,
};
inline constexpr int kShades = 6, kRunInks = 8;

/// How a curve is drawn. The strokes can be told apart without colour.
enum class Stroke {
  kFaint,   ///< thin and pale, for noisy data; it does not affect the range of the y axis
  kThin,    ///< one of many, such as a head of a layer; not in the legend, its name is a tooltip
  kDashed,  ///< likewise:
  kDotted,
  kSolid,  ///< bold, with a dot at each point; a tooltip gives its values
};

std::string_view class_of(Ink ink);
std::string_view class_of(Stroke stroke);

/// The colour of run n, and beyond the eighth run another stroke.
Ink ink_of_run(std::size_t n);
Stroke stroke_of_run(std::size_t n);

/// The CSS of these classes, a rule a line: on a light ground, and what changes on a dark one.
std::string_view plot_rules();
std::string_view plot_dark_rules();

struct PlotPoint {
  double x, y;
};

struct Curve {
  std::string name;
  std::vector<PlotPoint> points = {};  ///< x ascending; where y is not finite, the curve is broken
  Ink ink = Ink::kBlue;
  Stroke stroke = Stroke::kSolid;
  /// If not empty, of each point: how far a bar reaches up and down from it.
  std::vector<double> spread = {};
  /// If not empty, of each point: the lowest and the highest of what it stands for, as a pale band.
  std::vector<double> low = {}, high = {};
};

/// A ring drawn around one point, with a label beside it ("best 1.8712").
struct PlotRing {
  PlotPoint point;
  std::string label;
};

/// A vertical line across the plot.
struct PlotMark {
  double x;
  std::string label;  ///< a tooltip
};

/// Where a plot stands: as a file, with its title and a legend; or in an HTML page, which has both
/// beside it, as wide as the page or half as wide.
enum class PlotPlace { kFile, kWide, kHalf };

struct Plot {
  std::string title;
  std::string subtitle = {};
  std::string x_label = {};
  std::string y_label = {};
  std::vector<Curve> curves = {};
  std::optional<PlotRing> ring = std::nullopt;
  std::vector<PlotMark> marks = {};
  PageLanguage language = PageLanguage::kEnglish;  ///< of what the plot says by itself
  PlotPlace place = PlotPlace::kFile;
  bool begins_at_zero = true;  ///< whether the x axis may: of runs
  bool cuts_peaks = true;  ///< whether values far above the later ones may be cut off: of losses
};

/// The ranges of the axes of a plot.
struct PlotRange {
  double x_low, x_high, y_low, y_high;
};
PlotRange plot_range(const Plot& plot);

/// With cuts_peaks, the range of the y axis follows the last three quarters of the curves. Much
/// higher values before that are cut off at the top, and a mark there gives the highest value.
///
/// An equal plot gives equal bytes: UTF-8, well-formed XML 1.0 whatever the texts hold, without
/// scripts or references. Long curves are thinned: of the points in each tenth of a pixel column,
/// only the lowest and the highest are kept.
std::string draw_svg(const Plot& plot);

/// The plot inside an HTML page whose style has plot_rules(). `id`, unlike that of any other
/// element, is part of its names.
std::string draw_inline(const Plot& plot, std::string_view id);
/// A short stretch of a curve, for a legend in such a page.
std::string draw_sample(const Curve& curve);

/// Several plots, one below another, as one file. Throws Error(kShape) without any.
std::string draw_page(std::span<const Plot> plots);

/// The pixel of a point that is not shown.
inline constexpr PlotPoint kNowhere = {std::numeric_limits<double>::quiet_NaN(),
                                       std::numeric_limits<double>::quiet_NaN()};

/// Pixels from `low` to `high`.
struct PixelBox {
  PlotPoint low, high;
};

/// The middle of the baseline of a label as wide as 2 `half`, inside of `area`: the place nearest
/// to the ring where no curve runs, or where the fewest do.
PlotPoint ring_label_place(const std::vector<Curve>& curves,
                           const std::function<PlotPoint(const PlotPoint&)>& pixel, PlotPoint ring,
                           double half, const PixelBox& area);

}  // namespace fovea
