// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: side by side, and along an axis.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace fovea {

/// Three digits of the largest, and as many places of all others: 0 to `most`.
inline int places_for(double largest, int most) {
  if (!(largest > 0)) return 0;
  return std::clamp(2 - static_cast<int>(std::floor(std::log10(largest))), 0, most);
}

/// A value that rounds to 0 has no sign.
inline std::string with_places(double value, int places) {
  const std::string text = fmt::format("{:.{}f}", value, places);
  return text == fmt::format("{:.{}f}", -0.0, places) ? text.substr(1) : text;
}

/// Three digits of each, zeros at the end included, and all before the point.
inline std::string three_digits(double value) {
  const double size = std::abs(value);
  return size > 0 && size < 1e-4 ? fmt::format("{:.2e}", value)
                                 : with_places(value, places_for(size, 6));
}

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
