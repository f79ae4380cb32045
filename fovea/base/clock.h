// SPDX-License-Identifier: Apache-2.0
// The measuring of time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fovea {

/// Seconds of a clock that never goes back. Its zero is arbitrary: use differences only.
double monotonic_seconds();

/// The median. If the number of values is even, the upper of the two middle ones; 0 if there are
/// none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace fovea
