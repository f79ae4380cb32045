// SPDX-License-Identifier: Apache-2.0
// Arithmetic between the number types of a lambda and plain numbers, as in 2 * s, at.i / 512.0 or
// s < 0; and error messages for std::tanh(s) and for branches, which cannot work.
#pragma once

#include <concepts>
#include <type_traits>

namespace fovea::detail {

/// `type` is the common type of a lambda's number N and a plain number P. Each kind of number
/// (Dual, Traced, PlaceNumber, TracedNumber) specialises it.
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

/// A number type of another namespace derives from this, and so finds the operators here. Its
/// conditions are numbers, too.
struct Mixes {};

template <class P, class N>
concept ConditionWith = MixesWith<P, N> && std::is_base_of_v<Mixes, N>;

template <class N, ConditionWith<N> P>
N operator&&(const N& a, P b) {
  return a && N(b);
}
template <class N, ConditionWith<N> P>
N operator&&(P a, const N& b) {
  return N(a) && b;
}
template <class N, ConditionWith<N> P>
N operator||(const N& a, P b) {
  return a || N(b);
}
template <class N, ConditionWith<N> P>
N operator||(P a, const N& b) {
  return N(a) || b;
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

/// The conversion that `if (s > 0)` asks for.
template <std::same_as<bool> Plain>
Plain plain_truth() {
  static_assert(kNever<Plain>,
                "a traced function is called once, for all scores: it cannot branch on one. "
                "Write select(s > 0, a, b), and && or || of conditions");
  return {};
}

}  // namespace fovea::detail
