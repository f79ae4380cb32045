// SPDX-License-Identifier: Apache-2.0
// Curves as SVG: one self-contained file, readable on light and on dark ground.
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

/// How a curve is drawn; distinguishable within one colour.
enum class Stroke {
  kFaint,  ///< thin and pale: noise behind the other curves, which decide how high the y axis goes
  kDashed,
  kSolid,  ///< bold, with a dot at each point, which names it when pointed at
};

struct Curve {
  std::string name;
  std::vector<PlotPoint> points = {};  ///< x ascending; where y is not finite, the curve is broken
  Ink ink = Ink::kBlue;
  Stroke stroke = Stroke::kSolid;
};

/// A ring around one point, with a label beside it ("best 1.8712").
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

/// The y axis is made for the last three quarters of the curves: what is much higher before is cut
/// off at the top, with a mark that says how high it goes.
///
/// The same plot gives the same bytes: UTF-8, well-formed XML 1.0 whatever the texts hold, without
/// scripts or references. Long curves are thinned to what the eye can see: in each tenth of a
/// column the lowest and the highest point stay.
std::string draw_svg(const Plot& plot);

/// The losses of a run, over updates. Three means of the training loss that are easily confused:
/// they are measured at different weights (spec T9, T10), so they differ in stroke and name.
struct LossCurves {
  std::string title = "loss";
  std::vector<PlotPoint> last_batch = {};     ///< of each update alone
  std::vector<PlotPoint> running_mean = {};   ///< over the interval so far; begins anew after each
  std::vector<PlotPoint> interval_mean = {};  ///< exact, over all targets of a finished interval
  std::vector<PlotPoint> validation = {};     ///< exact, with the weights of that update
};

/// Curves without points are left out. The lowest validation loss is marked.
Plot loss_plot(const LossCurves& losses);

}  // namespace fovea
