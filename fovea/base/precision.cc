// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/precision.h"

#include <cmath>

namespace fovea {

namespace {

// Truncates x to a float32 towards zero, and sets its last bit when something was cut
// off ("round to odd"). A second rounding to fewer bits then gives what rounding once would give.
float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(x)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace

BFloat16 to_bfloat16(double x) { return to_bfloat16(round_to_odd(x)); }

}  // namespace fovea
