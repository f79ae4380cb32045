// SPDX-License-Identifier: Apache-2.0
// Sums, means and deviations.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/view.h"

namespace fovea::detail {

/// A sum in the order in which its terms come, with the rounding errors added up beside it
/// (Neumaier 1974): its error does not grow with the number of terms.
class Sum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

/// sum_n times[n] values[n] / sum_n times[n].
inline double weighted_mean(Vec<const double> values, Vec<const index> times) {
  Sum sum;
  index count = 0;
  for (index n = 0; n < values.size; ++n) {
    sum.add(static_cast<double>(times[n]) * values[n]);
    count += times[n];
  }
  return sum.value() / static_cast<double>(count);
}

}  // namespace fovea::detail

namespace fovea {

/// Throws kShape for no values.
inline double mean(const std::vector<double>& values) {
  check(!values.empty(), "mean: there are no values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// sqrt(sum (x - mean)^2 / (n - 1)). Throws kShape for fewer than two values.
inline double sample_deviation(const std::vector<double>& values) {
  check(values.size() > 1, "sample_deviation: expected two values or more, got {}", values.size());
  const double m = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - m) * (v - m);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace fovea
