// SPDX-License-Identifier: Apache-2.0
// Where the label of a plot's ring stands.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "fovea/report/plot.h"

namespace fovea {

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
