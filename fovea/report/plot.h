// SPDX-License-Identifier: Apache-2.0
// Draws curves as SVG: one self-contained file, readable on a light and on a dark background.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

struct PlotPoint {
  double x, y;
};

/// kShade0 to kShade5 are for what has an order, such as layers.
enum class Ink { kBlue, kOrange, kShade0, kShade1, kShade2, kShade3, kShade4, kShade5 };
inline constexpr int kShades = 6;

/// How a curve is drawn. The strokes can be told apart without colour.
enum class Stroke {
  kFaint,  ///< thin and pale, for noisy data; it does not affect the range of the y axis
  kThin,   ///< one of many, such as a head of a layer; not in the legend, its name is a tooltip
  kDashed,
  kSolid,  ///< bold, with a dot at each point; a tooltip gives its values
};

struct Curve {
  std::string name;
  std::vector<PlotPoint> points = {};  ///< x ascending; where y is not finite, the curve is broken
  Ink ink = Ink::kBlue;
  Stroke stroke = Stroke::kSolid;
  /// If not empty, of each point: how far a bar reaches up and down from it.
  std::vector<double> spread = {};
};

/// A ring drawn around one point, with a label beside it ("best 1.8712").
struct PlotRing {
  PlotPoint point;
  std::string label;
};

struct Plot {
  std::string title;
  std::string subtitle = {};
  std::string x_label = {};
  std::string y_label = {};
  std::vector<Curve> curves = {};
  std::optional<PlotRing> ring = std::nullopt;
  bool begins_at_zero = true;  ///< whether the x axis may: of runs
  bool cuts_peaks = true;  ///< whether values far above the later ones may be cut off: of losses
};

/// With cuts_peaks, the range of the y axis follows the last three quarters of the curves. Much
/// higher values before that are cut off at the top, and a mark there gives the highest value.
///
/// The same plot gives the same bytes: UTF-8, well-formed XML 1.0 whatever the texts hold, without
/// scripts or references. Long curves are thinned: of the points in each tenth of a pixel column,
/// only the lowest and the highest are kept.
std::string draw_svg(const Plot& plot);

/// Several plots, one below another, as one file. Throws Error(kShape) without any.
std::string draw_page(std::span<const Plot> plots);

}  // namespace fovea
