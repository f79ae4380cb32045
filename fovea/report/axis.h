// SPDX-License-Identifier: Apache-2.0
// Round numbers for the ticks of an axis.
#pragma once

#include <string>
#include <vector>

namespace fovea {

struct Tick {
  double value;
  std::string label;
};

/// Multiples of 1, 2 or 5 times a power of ten inside [low, high], ascending: as many as possible,
/// but at most `most` (which is at least 2). Labels have no more digits than they need. Both ends
/// must be finite, and low < high.
std::vector<Tick> axis_ticks(double low, double high, int most);

/// Four digits, with the units of ticks from 10k on: 37.44k.
std::string short_number(double value);

}  // namespace fovea
