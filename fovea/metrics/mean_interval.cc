// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/mean_interval.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// The .975 quantile of Student's t with n degrees of freedom.
double quantile_of_t(std::size_t n) {
  constexpr std::array<double, 12> kFew = {12.706205, 4.302653, 3.182446, 2.776445,
                                           2.570582,  2.446912, 2.364624, 2.306004,
                                           2.262157,  2.228139, 2.200985, 2.178813};
  if (n <= kFew.size()) return kFew[n - 1];
  // Cornish & Fisher's series around the normal quantile.
  constexpr double z = 1.959963985;
  const auto v = static_cast<double>(n);
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

}  // namespace

Interval mean_interval(std::span<const double> values) {
  check(!values.empty(), "mean_interval: no values");
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {mean, kNone, kNone};
  }
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = quantile_of_t(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

}  // namespace fovea
