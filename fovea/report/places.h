// SPDX-License-Identifier: Apache-2.0
// How many decimal places numbers side by side have.
#pragma once

#include <algorithm>
#include <cmath>

namespace fovea {

/// Three digits of the largest, and as many places of all others: 0 to `most`.
inline int places_for(double largest, int most) {
  if (!(largest > 0)) return 0;
  return std::clamp(2 - static_cast<int>(std::floor(std::log10(largest))), 0, most);
}

}  // namespace fovea
