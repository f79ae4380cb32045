// SPDX-License-Identifier: Apache-2.0
// A number and its slope in one variable: a formula in plain loops over these computes a gradient
// as plainly as it computes its values.
#pragma once

#include <cmath>
#include <numbers>

namespace fovea {

template <class T>
struct Dual {
  T value = 0;
  T slope = 0;

  Dual() = default;
  Dual(double v) : value(static_cast<T>(v)) {}
  Dual(T v, T s) : value(v), slope(s) {}

  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Dual operator/(Dual a, Dual b) {
    const T y = a.value / b.value;
    return {y, (a.slope - y * b.slope) / b.value};
  }
  Dual& operator+=(Dual b) { return *this = *this + b; }
  Dual& operator*=(Dual b) { return *this = *this * b; }
  Dual& operator/=(Dual b) { return *this = *this / b; }
  friend bool operator>(Dual a, Dual b) { return a.value > b.value; }
};

template <class T>
Dual<T> exp(Dual<T> x) {
  const T y = std::exp(x.value);
  return {y, y * x.slope};
}

template <class T>
Dual<T> log(Dual<T> x) {
  return {std::log(x.value), x.slope / x.value};
}

template <class T>
Dual<T> sqrt(Dual<T> x) {
  const T y = std::sqrt(x.value);
  return {y, x.slope / (2 * y)};
}

template <class T>
Dual<T> tanh(Dual<T> x) {
  const T y = std::tanh(x.value);
  return {y, (1 - y * y) * x.slope};
}

template <class T>
Dual<T> erfc(Dual<T> x) {
  const T slope = -2 * std::numbers::inv_sqrtpi_v<T> * std::exp(-x.value * x.value);
  return {std::erfc(x.value), slope * x.slope};
}

}  // namespace fovea
