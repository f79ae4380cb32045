// SPDX-License-Identifier: Apache-2.0
// Draws curves as SVG: one self-contained file, readable on a light and on a dark background.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

struct PlotPoint {
  double x, y;
};

enum class Ink { kBlue, kOrange };

/// How a curve is drawn. The strokes can be told apart without colour.
enum class Stroke {
  kFaint,  ///< thin and pale, for noisy data; it does not affect the range of the y axis
  kDashed,
  kSolid,  ///< bold, with a dot at each point; a tooltip gives its values
};

struct Curve {
  std::string name;
  std::vector<PlotPoint> points = {};  ///< x ascending; where y is not finite, the curve is broken
  Ink ink = Ink::kBlue;
  Stroke stroke = Stroke::kSolid;
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
};

/// The range of the y axis follows the last three quarters of the curves. Much higher values before
/// that are cut off at the top, and a mark there gives the highest value.
///
/// The same plot gives the same bytes: UTF-8, well-formed XML 1.0 whatever the texts hold, without
/// scripts or references. Long curves are thinned: of the points in each tenth of a pixel column,
/// only the lowest and the highest are kept.
std::string draw_svg(const Plot& plot);

/// The losses of a run, over updates. There are three means of the training loss, which are easily
/// confused. They average over different updates, hence over different weights (spec T9, T10), so
/// each has its own stroke and name.
struct LossCurves {
  std::string title = "loss";
  std::vector<PlotPoint> last_batch = {};     ///< of each update alone
  std::vector<PlotPoint> running_mean = {};   ///< over the interval so far; restarts with each
  std::vector<PlotPoint> interval_mean = {};  ///< exact, over all targets of a finished interval
  std::vector<PlotPoint> validation = {};     ///< exact, with the weights of that update
};

/// Curves without points are left out. The lowest validation loss is marked.
Plot loss_plot(const LossCurves& losses);

}  // namespace fovea
