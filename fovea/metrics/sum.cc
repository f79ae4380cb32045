// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/sum.h"

#include <cmath>
#include <numeric>

#include "fovea/base/check.h"

namespace fovea {

double mean(const std::vector<double>& values) {
  check(!values.empty(), "mean: there are no values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double sample_deviation(const std::vector<double>& values) {
  check(values.size() > 1, "sample_deviation: expected two values or more, got {}", values.size());
  const double m = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - m) * (v - m);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace fovea
