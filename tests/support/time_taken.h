// SPDX-License-Identifier: Apache-2.0
// What tests of loops that could be quadratic compare: times of the same machine, never a limit.
#pragma once

#include <algorithm>
#include <limits>

#include "fovea/base/clock.h"
#include "fovea/base/sanitizer.h"
#include "fovea/base/types.h"

namespace fovea {

/// The shortest of three.
template <class F>
double seconds_of(F&& f) {
  double shortest = std::numeric_limits<double>::infinity();
  for (int n = 0; n < 3; ++n) {
    const double began = monotonic_seconds();
    f();
    shortest = std::min(shortest, monotonic_seconds() - began);
  }
  return shortest;
}

/// Whether f(10 n) takes less than 30 times as long as f(n): a quadratic loop takes 100 times. What
/// takes no 20 ms is quick enough. A sanitizer's own work is not linear: under one, f is run alone.
template <class F>
bool grows_linearly(F&& f, index n) {
#if defined(FOVEA_ADDRESS_SANITIZER) || defined(FOVEA_THREAD_SANITIZER)
  f(10 * n);
  return true;
#else
  return seconds_of([&] { f(10 * n); }) < 0.02 + 30 * seconds_of([&] { f(n); });
#endif
}

}  // namespace fovea
