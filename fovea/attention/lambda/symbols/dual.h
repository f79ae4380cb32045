// SPDX-License-Identifier: Apache-2.0
// A number and its derivative by one variable, for forward-mode automatic
// differentiation.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "fovea/attention/lambda/symbols/mixed.h"

namespace fovea::detail {

/// value, and d value / d x for the one x whose derivative was set to 1. Comparisons use the value;
/// at a kink the derivative is that of the branch taken.
template <class T>
struct Dual {
  T value = 0;
  T derivative = 0;

  Dual() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number> Dual(Number v) : value(static_cast<T>(v)) {}
  Dual(T v, T d) : value(v), derivative(d) {}
  template <std::same_as<long double> Plain>
  operator Plain() const {  // NOLINT: asked for by std::tanh(s), and refused
    return plain_number<Plain>();
  }

  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.derivative + b.derivative}; }
  friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.derivative - b.derivative}; }
  friend Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.derivative * b.value + a.value * b.derivative};
  }
  friend Dual operator/(Dual a, Dual b) {
    const T ratio = a.value / b.value;
    return {ratio, (a.derivative - ratio * b.derivative) / b.value};
  }
  friend Dual operator-(Dual a) { return {-a.value, -a.derivative}; }
  friend Dual& operator+=(Dual& a, Dual b) { return a = a + b; }
  friend Dual& operator-=(Dual& a, Dual b) { return a = a - b; }
  friend Dual& operator*=(Dual& a, Dual b) { return a = a * b; }
  friend Dual& operator/=(Dual& a, Dual b) { return a = a / b; }

  friend bool operator<(Dual a, Dual b) { return a.value < b.value; }
  friend bool operator>(Dual a, Dual b) { return a.value > b.value; }
  friend bool operator<=(Dual a, Dual b) { return a.value <= b.value; }
  friend bool operator>=(Dual a, Dual b) { return a.value >= b.value; }
  friend bool operator==(Dual a, Dual b) { return a.value == b.value; }

  // Found by argument-dependent lookup: tanh(s) in a lambda calls these.
  friend Dual exp(Dual a) {
    const T e = std::exp(a.value);
    return {e, e * a.derivative};
  }
  friend Dual log(Dual a) { return {std::log(a.value), a.derivative / a.value}; }
  friend Dual tanh(Dual a) {
    const T t = std::tanh(a.value);
    return {t, (1 - t * t) * a.derivative};
  }
  friend Dual sqrt(Dual a) {
    const T root = std::sqrt(a.value);
    return {root, a.derivative / (2 * root)};
  }
  friend Dual sin(Dual a) { return {std::sin(a.value), std::cos(a.value) * a.derivative}; }
  friend Dual cos(Dual a) { return {std::cos(a.value), -std::sin(a.value) * a.derivative}; }
  friend Dual abs(Dual a) { return a.value < 0 ? -a : a; }
  friend Dual min(Dual a, Dual b) { return b < a ? b : a; }
  friend Dual max(Dual a, Dual b) { return a < b ? b : a; }
  /// a where the condition holds, else b.
  friend Dual select(bool condition, Dual a, Dual b) { return condition ? a : b; }
};

template <class T, class P>
struct CommonNumber<Dual<T>, P> {
  using type = Dual<T>;
};

}  // namespace fovea::detail
