// SPDX-License-Identifier: Apache-2.0
// A step of dual coordinate descent for the logistic loss (Yu, Huang & Lin 2011). Internal.
#pragma once

#include <algorithm>
#include <cmath>

namespace fovea {

/// Where a dual variable begins; the rest of its cost is the other one.
inline double first_dual(double cost) {
  constexpr double kFirstShare = 1e-3, kFirst = 1e-8;
  return std::min(kFirstShare * cost, kFirst);
}

/// The z in (0, cost) where its derivative square (z - old) + slope + log(z / (cost - z)) is 0, by
/// Newton's method (algorithm 4). The optimum lies in (0, cost / 2].
inline double logistic_step(double square, double slope, double old, double cost) {
  constexpr int kMostSteps = 100;
  constexpr double kNear = 1e-10, kShrink = 0.1;
  double z = old <= cost / 2 ? old : kShrink * old;
  for (int step = 0; step < kMostSteps; ++step) {
    const double gradient = square * (z - old) + slope + std::log(z / (cost - z));
    if (std::abs(gradient) < kNear) break;
    const double next = z - gradient / (square + cost / (cost - z) / z);
    if (next == z) break;
    z = next <= 0 ? kShrink * z : std::min(next, cost / 2);
  }
  return z;
}

struct DualStep {
  double far = 0;    ///< how far the row's margin was from what its dual variable says
  double grown = 0;  ///< what a has grown by
};

/// Sets a row's a and cost - a, `rest`, to their optimum. `slope` is y times its value, `square`
/// |s x|^2.
inline DualStep step_dual(double slope, double square, double cost, double& a, double& rest) {
  const double far = std::abs(slope + std::log(a / rest));
  // The smaller of both is the variable, so that neither is a difference of equal numbers.
  const bool is_small = square * (cost / 2 - a) + slope > 0;
  double& small = is_small ? a : rest;
  const double old = small;
  small = logistic_step(square, is_small ? slope : -slope, old, cost);
  (is_small ? rest : a) = cost - small;
  return {far, is_small ? small - old : old - small};
}

}  // namespace fovea
