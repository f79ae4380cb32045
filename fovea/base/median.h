// SPDX-License-Identifier: Apache-2.0
// The middle of some measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fovea {

/// The upper one of the two in the middle, if their number is even; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace fovea
