// SPDX-License-Identifier: Apache-2.0
// Round numbers along an axis.
#pragma once

#include <string>
#include <vector>

namespace fovea {

struct Tick {
  double value;
  std::string label;
};

/// Multiples of 1, 2 or 5 times a power of ten inside [low, high], ascending: as many as there is
/// room for, at most `most` (at least 2), labelled with no more digits than they need. Both ends
/// must be finite, and low < high.
std::vector<Tick> axis_ticks(double low, double high, int most);

}  // namespace fovea
