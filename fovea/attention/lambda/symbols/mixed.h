// SPDX-License-Identifier: Apache-2.0
// Arithmetic between the number types of a lambda and plain numbers, as in 2 * s, at.i / 512.0 or
// s < 0; and an error message for std::tanh(s), which cannot work.
#pragma once

#include <concepts>
#include <type_traits>

namespace fovea::detail {

/// `type` is the common type of a lambda's number N and a plain number P. Each kind of number
/// (Dual, Traced, PlaceNumber) specialises it.
template <class N, class P>
struct CommonNumber {};
template <class P, class N>
concept MixesWith = std::is_arithmetic_v<P> && requires {
  typename CommonNumber<N, P>::type;
};

// Exact matches: the conversion below, which exists to be refused, competes with none of them.
template <class N, MixesWith<N> P>
auto operator+(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) + typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator+(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) + typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator-(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) - typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator-(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) - typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator*(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) * typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator*(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) * typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator/(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) / typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator/(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) / typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator<(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) < typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator<(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) < typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator>(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) > typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator>(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) > typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator<=(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) <= typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator<=(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) <= typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator>=(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) >= typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator>=(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) >= typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator==(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) == typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator==(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) == typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator!=(const N& a, P b) {
  return typename CommonNumber<N, P>::type(a) != typename CommonNumber<N, P>::type(b);
}
template <class N, MixesWith<N> P>
auto operator!=(P a, const N& b) {
  return typename CommonNumber<N, P>::type(a) != typename CommonNumber<N, P>::type(b);
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

}  // namespace fovea::detail
