// SPDX-License-Identifier: Apache-2.0
// Round numbers along an axis.
#pragma once

#include <string>
#include <vector>

namespace fovea {

enum class AxisScale { kLinear, kLog };

struct Tick {
  double value;
  std::string label;
};

/// Multiples of 1, 2 or 5 times a power of ten inside [low, high], ascending: as many as there is
/// room for, at most `most` (at least 2), labelled with no more digits than they need. On a
/// logarithmic axis (low > 0), powers of ten, with 2 and 5 times each where there is room; where
/// the range holds fewer than three of those, as on a linear one.
/// Both ends must be finite, and low < high.
std::vector<Tick> axis_ticks(double low, double high, int most, AxisScale scale);

}  // namespace fovea
