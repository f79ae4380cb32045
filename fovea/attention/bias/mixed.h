// SPDX-License-Identifier: Apache-2.0
// Where a lambda's own numbers meet plain ones, as in 2 * s, at.i / 512.0 or s < 0; and where they
// must not, as in std::tanh(s).
#pragma once

#include <concepts>
#include <type_traits>

namespace fovea {

/// What a number N of a lambda and a plain number P both become when they meet: `type`. Each kind
/// of number (Dual, Traced, PlaceNumber) specialises it.
template <class N, class P>
struct Meeting {};
template <class P, class N>
concept MeetsNumber = std::is_arithmetic_v<P> && requires {
  typename Meeting<N, P>::type;
};

// Exact matches: the conversion below, which exists to be refused, competes with none of them.
template <class N, MeetsNumber<N> P>
auto operator+(const N& a, P b) {
  return typename Meeting<N, P>::type(a) + typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator+(P a, const N& b) {
  return typename Meeting<N, P>::type(a) + typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator-(const N& a, P b) {
  return typename Meeting<N, P>::type(a) - typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator-(P a, const N& b) {
  return typename Meeting<N, P>::type(a) - typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator*(const N& a, P b) {
  return typename Meeting<N, P>::type(a) * typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator*(P a, const N& b) {
  return typename Meeting<N, P>::type(a) * typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator/(const N& a, P b) {
  return typename Meeting<N, P>::type(a) / typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator/(P a, const N& b) {
  return typename Meeting<N, P>::type(a) / typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator<(const N& a, P b) {
  return typename Meeting<N, P>::type(a) < typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator<(P a, const N& b) {
  return typename Meeting<N, P>::type(a) < typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator>(const N& a, P b) {
  return typename Meeting<N, P>::type(a) > typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator>(P a, const N& b) {
  return typename Meeting<N, P>::type(a) > typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator<=(const N& a, P b) {
  return typename Meeting<N, P>::type(a) <= typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator<=(P a, const N& b) {
  return typename Meeting<N, P>::type(a) <= typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator>=(const N& a, P b) {
  return typename Meeting<N, P>::type(a) >= typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator>=(P a, const N& b) {
  return typename Meeting<N, P>::type(a) >= typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator==(const N& a, P b) {
  return typename Meeting<N, P>::type(a) == typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator==(P a, const N& b) {
  return typename Meeting<N, P>::type(a) == typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator!=(const N& a, P b) {
  return typename Meeting<N, P>::type(a) != typename Meeting<N, P>::type(b);
}
template <class N, MeetsNumber<N> P>
auto operator!=(P a, const N& b) {
  return typename Meeting<N, P>::type(a) != typename Meeting<N, P>::type(b);
}

template <class>
inline constexpr bool kNever = false;

/// The conversion that functions of std:: ask for: std::tanh(s) takes a long double, and finds this
/// message instead of a list of all that it might have meant.
template <std::same_as<long double> Plain>
Plain plain_number() {
  static_assert(
      kNever<Plain>,
      "a lambda's numbers stand for many scores: take them as `auto s`, and write tanh(s), "
      "exp(s), abs(at.i - at.j), ... without std::");
  return {};
}

}  // namespace fovea
