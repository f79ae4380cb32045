// SPDX-License-Identifier: Apache-2.0
// Numbers side by side.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

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

}  // namespace fovea
