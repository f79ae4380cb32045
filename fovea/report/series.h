// SPDX-License-Identifier: Apache-2.0
// Long series of measurements, thinned without hiding anything.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/plot.h"

namespace fovea {

/// Measurements in a row, from update `first` to update `last`.
struct SeriesPoint {
  double first, last;
  double low, mean, high;  ///< of those that are finite; NaN if none is
  index count = 1;
};

struct Series {
  std::string name = {};
  std::vector<SeriesPoint> points = {};
  index measurements = 0;

  bool is_thinned() const { return measurements > static_cast<index>(points.size()); }
};

/// A point for each measurement or, if there are more than `most`, for each of up to `most` groups
/// of as many measurements (the last may have fewer). x ascends.
Series series_of(std::string name, std::span<const PlotPoint> measurements, index most);

/// Thinned: the means, in the middle of what they stand for, with a band from the lowest to the
/// highest. Otherwise the measurements.
Curve curve_of(const Series& series, Ink ink, Stroke stroke);

}  // namespace fovea
