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

/// The baseline, in pixels, of a label of width 2 `half` around ring.x: over or under the ring,
/// between `top` and `bottom`, where the fewest curves run through it.
double ring_label_y(const std::vector<Curve>& curves,
                    const std::function<PlotPoint(const PlotPoint&)>& pixel, PlotPoint ring,
                    double half, double top, double bottom);

}  // namespace fovea
