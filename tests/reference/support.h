// SPDX-License-Identifier: Apache-2.0
// Values by hand.
#pragma once

#include <vector>

#include "tests/kernel/support.h"

namespace fovea {

inline Matrix<double> row(const std::vector<double>& values) {
  Matrix<double> x(1, static_cast<index>(values.size()));
  for (index c = 0; c < x.columns(); ++c) x.at(0, c) = values[static_cast<std::size_t>(c)];
  return x;
}

inline void expect_near(const Matrix<double>& x, const std::vector<double>& expected) {
  EXPECT_LE(largest_difference(x.values(), expected), 1e-12);
}

}  // namespace fovea
