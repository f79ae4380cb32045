// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/kerple_power.h"

#include <algorithm>
#include <cmath>

namespace fovea::bias {

// In this order, for NaN must stay NaN.
template <class T>
auto KerplePower<T>::counted(double r1, double r2) const -> Numbers {
  return {std::max(r1, kKerplePowerLeast),
          std::min(std::max(r2, kKerplePowerLeast), kKerplePowerMost)};
}

template <class T>
double KerplePower<T>::term(const Numbers& of, double distance) const {
  return of.r1 * std::pow(distance, of.r2);
}

template <class T>
auto KerplePower<T>::slopes(const Numbers& of, double distance) const -> Numbers {
  const double power = std::pow(distance, of.r2);
  return {power, distance == 0 ? 0 : of.r1 * power * std::log(distance)};
}

template class KerplePower<float>;
template class KerplePower<double>;

}  // namespace fovea::bias
