// SPDX-License-Identifier: Apache-2.0
// The place of a score, for lambdas over any number type: [](auto s, const Place auto& at).
#pragma once

#include <concepts>
#include <type_traits>

#include "fovea/attention/lambda/symbols/mixed.h"
#include "fovea/attention/lambda/symbols/tape.h"
#include "fovea/attention/lambda/symbols/traced.h"
#include "fovea/attention/tile.h"

namespace fovea::detail {

/// An integer of a place. Sums, differences and integer multiples stay exact integers for any
/// length of a sequence. Other operations convert it to `Number`; float is exact up to 2^24.
template <class Number>
class PlaceNumber {
 public:
  template <std::integral Whole>
  PlaceNumber(Whole value)
      : constant_(static_cast<index>(value)) {}  // NOLINT: as a number would be
  /// The i or j of each score of a tile.
  PlaceNumber(LaneTape& program, index of_i, index of_j)
      : program_(&program), of_i_(of_i), of_j_(of_j) {}

  operator Number() const {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_same_v<Number, Traced>) {
      if (of_i_ != 0 || of_j_ != 0) return program_->place(of_i_, of_j_, constant_);
    }
    return Number(constant_);
  }
  template <std::same_as<long double> Plain>
  operator Plain() const {  // NOLINT: asked for by std::abs(at.i - at.j), and refused
    return plain_number<Plain>();
  }

  friend PlaceNumber operator+(PlaceNumber a, PlaceNumber b) { return sum(a, b, 1); }
  friend PlaceNumber operator-(PlaceNumber a, PlaceNumber b) { return sum(a, b, -1); }
  friend PlaceNumber operator-(PlaceNumber a) { return sum(0, a, -1); }
  template <std::integral Whole>
  friend PlaceNumber operator*(PlaceNumber a, Whole by) {
    return sum(0, a, static_cast<index>(by));
  }
  template <std::integral Whole>
  friend PlaceNumber operator*(Whole by, PlaceNumber a) {
    return sum(0, a, static_cast<index>(by));
  }
  // Ambiguous: integer or float division? Write x / 2.0 for the latter.
  template <std::integral Whole>
  friend PlaceNumber operator/(PlaceNumber, Whole) = delete;
  template <std::integral Whole>
  friend PlaceNumber operator/(Whole, PlaceNumber) = delete;

  friend Number abs(PlaceNumber a) { return abs(Number(a)); }
  friend Number exp(PlaceNumber a) { return exp(Number(a)); }
  friend Number log(PlaceNumber a) { return log(Number(a)); }
  friend Number tanh(PlaceNumber a) { return tanh(Number(a)); }
  friend Number sqrt(PlaceNumber a) { return sqrt(Number(a)); }
  friend Number sin(PlaceNumber a) { return sin(Number(a)); }
  friend Number cos(PlaceNumber a) { return cos(Number(a)); }

  friend auto operator<(PlaceNumber a, PlaceNumber b) { return Number(a - b) < Number(0); }
  friend auto operator>(PlaceNumber a, PlaceNumber b) { return Number(a - b) > Number(0); }
  friend auto operator<=(PlaceNumber a, PlaceNumber b) { return Number(a - b) <= Number(0); }
  friend auto operator>=(PlaceNumber a, PlaceNumber b) { return Number(a - b) >= Number(0); }
  friend auto operator==(PlaceNumber a, PlaceNumber b) { return Number(a - b) == Number(0); }
  friend auto operator!=(PlaceNumber a, PlaceNumber b) { return Number(a - b) != Number(0); }

 private:
  static PlaceNumber sum(PlaceNumber a, PlaceNumber b, index times) {
    if (a.program_ == nullptr) a.program_ = b.program_;
    a.of_i_ += times * b.of_i_;
    a.of_j_ += times * b.of_j_;
    a.constant_ += times * b.constant_;
    return a;
  }

  LaneTape* program_ = nullptr;
  index of_i_ = 0, of_j_ = 0, constant_ = 0;
};

template <class Number, class P>
struct CommonNumber<PlaceNumber<Number>, P> {
  using type = std::conditional_t<std::is_integral_v<P>, PlaceNumber<Number>, Number>;
};

/// A ScoreSite made of such numbers.
template <class Number>
struct PlaceOf {
  PlaceNumber<Number> head, i, j;
  PlaceNumber<Number> queries, keys;  ///< T' and S' of the sequence
  PlaceNumber<Number> offset;         ///< position of query 0

  explicit PlaceOf(const ScoreSite& site) : PlaceOf(site.sequence, site.head, site.i, site.j) {}
  PlaceOf(const Sequence& sequence, index h, PlaceNumber<Number> i_, PlaceNumber<Number> j_)
      : head(h),
        i(i_),
        j(j_),
        queries(sequence.queries),
        keys(sequence.keys),
        offset(sequence.position(0)) {}

  /// Position of the query; compare it with j.
  PlaceNumber<Number> position() const { return i + offset; }
};

template <class P>
inline constexpr bool kIsPlace = false;
template <class Number>
inline constexpr bool kIsPlace<PlaceOf<Number>> = true;

}  // namespace fovea::detail

namespace fovea {

/// A PlaceOf any type of number. (A ScoreSite is not: its numbers are plain integers.)
template <class P>
concept Place = detail::kIsPlace<P>;

}  // namespace fovea
