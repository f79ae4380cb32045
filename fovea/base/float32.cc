// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/float32.h"

#include <fmt/format.h>

#include <cmath>

namespace fovea {

bool is_finite_float32(double number) { return std::isfinite(static_cast<float>(number)); }

std::string why_not_float32(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return "infinity";
  return fmt::format("{}, too large for float32", number);
}

}  // namespace fovea
