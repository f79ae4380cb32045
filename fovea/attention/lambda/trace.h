// SPDX-License-Identifier: Apache-2.0
// Functions that read tables: a lambda is called once with symbols, and what it does to them
// becomes a program, which runs by vectors in both directions.
//
//   const Captured<std::int32_t> distance(path.data(), {B, T, T});
//   const Captured<float> table(values.data(), {H, 8}, gradient.data());
//   const Bias<float> bias = bias::traced<float>(in.sizes(),
//                                               [&](TracedNumber s, const TracedPlace& at) {
//     return s + table(at.head, distance(at.batch, at.i, at.j));
//   });
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "fovea/attention/lambda/program/program_parts.h"
#include "fovea/attention/lambda/symbols/mixed.h"

namespace fovea {

class TracedNumber;

namespace detail {

template <class P>
struct CommonNumber<TracedNumber, P> {
  using type = TracedNumber;
};

class Trace;
TracedNumber record_step(TapeOp op, std::initializer_list<TracedNumber> operands);
TracedNumber record_read(const CapturedTable& table, void* gradient,
                         std::span<const TracedNumber> at);
/// The numbers 1 or 0.
TracedNumber record_truth(const TracedNumber& condition);

}  // namespace detail

/// A symbol that stands for one number of each score, or a constant. Conditions are numbers as
/// well: 1 or 0. It has no value that a branch could follow: use select(). Symbols belong to the
/// call of the function that got them; elsewhere their use throws Error(kUsage).
class TracedNumber : detail::Mixes {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> TracedNumber(Number value)  // NOLINT: as a number would be
      : value_(static_cast<double>(value)) {}
  template <std::same_as<long double> Plain>
  operator Plain() const {  // NOLINT: asked for by std::tanh(s), and refused
    return detail::plain_number<Plain>();
  }
  template <std::same_as<bool> Plain>
  explicit operator Plain() const {  // asked for by if (s > 0), and refused
    return detail::plain_truth<Plain>();
  }

  friend TracedNumber operator+(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kAdd, {a, b});
  }
  friend TracedNumber operator-(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kSub, {a, b});
  }
  friend TracedNumber operator*(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kMul, {a, b});
  }
  /// Divides real numbers, also where both are whole; the other division is floor_divide().
  friend TracedNumber operator/(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kDiv, {a, b});
  }
  friend TracedNumber operator-(const TracedNumber& a) {
    return detail::record_step(detail::TapeOp::kNeg, {a});
  }
  TracedNumber& operator+=(const TracedNumber& b) { return *this = *this + b; }
  TracedNumber& operator-=(const TracedNumber& b) { return *this = *this - b; }
  TracedNumber& operator*=(const TracedNumber& b) { return *this = *this * b; }
  TracedNumber& operator/=(const TracedNumber& b) { return *this = *this / b; }

  friend TracedNumber operator<(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kLess, {a, b});
  }
  friend TracedNumber operator>(const TracedNumber& a, const TracedNumber& b) { return b < a; }
  friend TracedNumber operator<=(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kLessEqual, {a, b});
  }
  friend TracedNumber operator>=(const TracedNumber& a, const TracedNumber& b) { return b <= a; }
  friend TracedNumber operator==(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kEqual, {a, b});
  }
  friend TracedNumber operator!=(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kNotEqual, {a, b});
  }
  friend TracedNumber operator!(const TracedNumber& a) { return a == 0; }
  /// Both sides are recorded: there is nothing to leave out.
  friend TracedNumber operator&&(const TracedNumber& a, const TracedNumber& b) {
    return min(detail::record_truth(a), detail::record_truth(b));
  }
  friend TracedNumber operator||(const TracedNumber& a, const TracedNumber& b) {
    return max(detail::record_truth(a), detail::record_truth(b));
  }

  // These take whole numbers: bits, and the remainder of floor_divide() with the sign of b.
  friend TracedNumber operator%(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kModulo, {a, b});
  }
  friend TracedNumber operator&(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kAnd, {a, b});
  }
  friend TracedNumber operator|(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kOr, {a, b});
  }
  friend TracedNumber operator^(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kXor, {a, b});
  }
  friend TracedNumber operator<<(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kShiftLeft, {a, b});
  }
  friend TracedNumber operator>>(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kShiftRight, {a, b});
  }
  /// The largest whole number not above a / b.
  friend TracedNumber floor_divide(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kFloorDivide, {a, b});
  }

  friend TracedNumber abs(const TracedNumber& a) { return unary(detail::TapeOp::kAbs, a); }
  friend TracedNumber exp(const TracedNumber& a) { return unary(detail::TapeOp::kExp, a); }
  friend TracedNumber log(const TracedNumber& a) { return unary(detail::TapeOp::kLog, a); }
  friend TracedNumber tanh(const TracedNumber& a) { return unary(detail::TapeOp::kTanh, a); }
  friend TracedNumber sqrt(const TracedNumber& a) { return unary(detail::TapeOp::kSqrt, a); }
  friend TracedNumber sin(const TracedNumber& a) { return unary(detail::TapeOp::kSin, a); }
  friend TracedNumber cos(const TracedNumber& a) { return unary(detail::TapeOp::kCos, a); }
  friend TracedNumber erf(const TracedNumber& a) { return unary(detail::TapeOp::kErf, a); }
  friend TracedNumber floor(const TracedNumber& a) { return unary(detail::TapeOp::kFloor, a); }
  /// To the nearest whole number, halves to the even one.
  friend TracedNumber round(const TracedNumber& a) { return unary(detail::TapeOp::kRound, a); }
  friend TracedNumber min(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kMin, {a, b});
  }
  friend TracedNumber max(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kMax, {a, b});
  }
  friend TracedNumber pow(const TracedNumber& a, const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kPower, {a, b});
  }
  /// a where the condition is not 0, else b.
  friend TracedNumber select(const TracedNumber& condition, const TracedNumber& a,
                             const TracedNumber& b) {
    return detail::record_step(detail::TapeOp::kSelect, {condition, a, b});
  }

 private:
  friend class detail::Trace;
  static TracedNumber unary(detail::TapeOp op, const TracedNumber& a) {
    return detail::record_step(op, {a});
  }

  std::uint64_t trace_ = 0;  // the number of the trace that the step belongs to; 0: a constant
  int step_ = -1;
  double value_ = 0;  // of a constant
};

/// The place of a score: the row of the batch, the head of q, the query and the key, each counted
/// from 0.
struct TracedPlace {
  TracedNumber batch, head, i, j;
};

/// A tensor that traced functions read, contiguous, with `sizes` of at most six axes: real numbers
/// (float, double) or whole ones (std::int32_t, std::int64_t, std::uint8_t, bool). It must outlive
/// the calls. Its real numbers may change between them; whole ones must not, for their least and
/// largest values decide which tiles a mask skips.
///
/// `gradient`, of the same sizes, is filled by each backward. A function reads such a tensor at one
/// index, and its type is that of the call.
template <class V>
class Captured {
 public:
  /// Throws Error(kShape) for sizes without data.
  Captured(const V* values, const std::vector<index>& sizes);
  Captured(const V* values, const std::vector<index>& sizes,
           V* gradient) requires std::is_floating_point_v<V> : Captured(values, sizes) {
    gradient_ = gradient;
  }

  /// The entry at these indices, one for each axis. A negative one counts from the end. One that is
  /// beyond its axis, for any query and key, throws Error(kShape).
  template <class... At>
  TracedNumber operator()(const At&... at) const {
    const std::initializer_list<TracedNumber> all = {TracedNumber(at)...};
    return detail::record_read(table_, gradient_, {all.begin(), all.size()});
  }

 private:
  detail::CapturedTable table_;
  void* gradient_ = nullptr;
};

namespace bias {

/// s -> function(s, place) for calls of T and of these sizes (AttentionInputs::sizes()), without
/// packed sequences. The function is called here, once; numbers that it captures keep the value of
/// this moment. Throws Error(kUsage) for symbols of another call, Error(kShape) for an index that
/// is beyond a tensor everywhere, and for tensors that do not fit what the function does with them.
template <class T>
Bias<T> traced(const AttentionSizes& sizes,
               const std::function<TracedNumber(TracedNumber, const TracedPlace&)>& function);

}  // namespace bias

namespace mask {

/// Keeps the scores for which function(place) is not 0, for the same calls. Tiles that it keeps
/// nothing of are skipped.
Mask traced(const AttentionSizes& sizes,
            const std::function<TracedNumber(const TracedPlace&)>& function);

}  // namespace mask

}  // namespace fovea
