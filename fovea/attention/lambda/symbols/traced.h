// SPDX-License-Identifier: Apache-2.0
// A symbolic number. A lambda that is called once with such numbers records its operations in a
// program (tape.h), which then runs vectorised over a whole tile of scores.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "fovea/attention/lambda/symbols/mixed.h"
#include "fovea/base/types.h"

namespace fovea::detail {

class LaneTape;

/// The operations of a program.
enum class TapeOp : std::uint8_t {
  // reads nothing
  kConstant,
  kParameter,  ///< a learned number
  kScore,
  kDscore,  ///< the gradient of the result
  kPlace,   ///< a sum of multiples of i and j, and a constant
  kLoad,    ///< the value of a table at a place that is such a sum
  // reads a
  kNeg,
  kAbs,
  kExp,
  kLog,
  kTanh,
  kTanhSlope,  ///< 1 - a a
  kSqrt,
  kSin,
  kCos,
  kErf,
  kFloor,
  kRound,   ///< to the nearest whole number, halves to the even one
  kGather,  ///< the value of a table at a
  kStore,   ///< adds a to the gradient of what kLoad reads; a step without a value
  // reads a and b
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kLess,  ///< comparisons: 1 or 0
  kLessEqual,
  kEqual,
  kNotEqual,
  kPull,  ///< a b, and 0 where a is 0, whatever b is
  kPower,
  kFloorDivide,  ///< the largest whole number not above a / b
  kModulo,       ///< a - b floor(a / b): its sign is that of b
  kAnd,          ///< of the bits of whole numbers
  kOr,
  kXor,
  kShiftLeft,
  kShiftRight,
  kGather2,  ///< the value of a table at (a, b)
  kScatter,  ///< adds a to the gradient of what kGather reads at b
  // reads a, b and c
  kSelect,    ///< b where a is not 0, else c
  kScatter2,  ///< adds a to the gradient of what kGather2 reads at (b, c)
};
/// The result of an operation of bits, on whole numbers.
double bits_of(TapeOp op, double a, double b);
inline bool is_store(TapeOp op) {
  return op == TapeOp::kStore || op == TapeOp::kScatter || op == TapeOp::kScatter2;
}
inline int operands(TapeOp op) {
  return op < TapeOp::kNeg ? 0 : op < TapeOp::kAdd ? 1 : op < TapeOp::kSelect ? 2 : 3;
}

class TracedBool;

/// A symbol, or a constant. Arithmetic on a symbol is recorded in its program.
class Traced {
 public:
  Traced() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number> Traced(Number v) : value_(static_cast<double>(v)) {}
  template <std::same_as<long double> Plain>
  operator Plain() const {  // NOLINT: asked for by std::tanh(s), and refused
    return plain_number<Plain>();
  }

  friend Traced operator+(Traced a, Traced b) { return record(TapeOp::kAdd, a, b); }
  friend Traced operator-(Traced a, Traced b) { return record(TapeOp::kSub, a, b); }
  friend Traced operator*(Traced a, Traced b) { return record(TapeOp::kMul, a, b); }
  friend Traced operator/(Traced a, Traced b) { return record(TapeOp::kDiv, a, b); }
  friend Traced operator-(Traced a) { return record(TapeOp::kNeg, a); }
  friend Traced& operator+=(Traced& a, Traced b) { return a = a + b; }
  friend Traced& operator-=(Traced& a, Traced b) { return a = a - b; }
  friend Traced& operator*=(Traced& a, Traced b) { return a = a * b; }
  friend Traced& operator/=(Traced& a, Traced b) { return a = a / b; }

  friend TracedBool operator<(Traced a, Traced b);
  friend TracedBool operator>(Traced a, Traced b);
  friend TracedBool operator<=(Traced a, Traced b);
  friend TracedBool operator>=(Traced a, Traced b);
  friend TracedBool operator==(Traced a, Traced b);
  friend TracedBool operator!=(Traced a, Traced b);
  friend Traced select(bool condition, Traced a, Traced b) { return condition ? a : b; }

  friend Traced exp(Traced a) { return record(TapeOp::kExp, a); }
  friend Traced log(Traced a) { return record(TapeOp::kLog, a); }
  friend Traced tanh(Traced a) { return record(TapeOp::kTanh, a); }
  friend Traced sqrt(Traced a) { return record(TapeOp::kSqrt, a); }
  friend Traced sin(Traced a) { return record(TapeOp::kSin, a); }
  friend Traced cos(Traced a) { return record(TapeOp::kCos, a); }
  friend Traced abs(Traced a) { return record(TapeOp::kAbs, a); }
  friend Traced min(Traced a, Traced b) { return record(TapeOp::kMin, a, b); }
  friend Traced max(Traced a, Traced b) { return record(TapeOp::kMax, a, b); }
  friend Traced pow(Traced a, Traced b) { return record(TapeOp::kPower, a, b); }
  friend Traced floor_divide(Traced a, Traced b) { return record(TapeOp::kFloorDivide, a, b); }
  /// The derivative of tanh where tanh is a.
  friend Traced tanh_slope(Traced a) { return record(TapeOp::kTanhSlope, a); }

 private:
  friend class LaneTape;
  friend class TracedBool;
  Traced(LaneTape* program, int step, double value, bool single)
      : program_(program), step_(step), value_(value), single_(single) {}
  static Traced record(TapeOp op, const Traced& a) { return record(op, a, 0, 0); }
  static Traced record(TapeOp op, const Traced& a, const Traced& b) { return record(op, a, b, 0); }
  static Traced record(TapeOp op, const Traced& a, const Traced& b, const Traced& c);

  LaneTape* program_ = nullptr;  // none: a constant
  int step_ = -1;                // in the program
  double value_ = 0;             // of a constant, and of what is the same all over the tile
  bool single_ = false;          // a number of a call in float: what meets it is rounded to float
};

template <class P>
struct CommonNumber<Traced, P> {
  using type = Traced;
};

/// The result of comparing symbols: one answer per score. select() uses each of them, but a branch
/// can follow only one: so a function that branches on a score is computed score by score. (If all
/// answers are the same, as for learned numbers, a branch is fine.)
class TracedBool {
 public:
  operator bool() const;  // NOLINT(google-explicit-constructor): as a bool would be

  friend Traced select(TracedBool condition, Traced a, Traced b) { return choose(condition, a, b); }

 private:
  friend class Traced;
  static TracedBool record(TapeOp op, Traced a, Traced b) {
    TracedBool result;
    result.answer_ = Traced::record(op, a, b);
    return result;
  }
  static Traced choose(TracedBool condition, Traced a, Traced b) {
    return Traced::record(TapeOp::kSelect, condition.answer_, a, b);
  }
  friend TracedBool operator<(Traced a, Traced b) { return record(TapeOp::kLess, a, b); }
  friend TracedBool operator>(Traced a, Traced b) { return record(TapeOp::kLess, b, a); }
  friend TracedBool operator<=(Traced a, Traced b) { return record(TapeOp::kLessEqual, a, b); }
  friend TracedBool operator>=(Traced a, Traced b) { return record(TapeOp::kLessEqual, b, a); }
  friend TracedBool operator==(Traced a, Traced b) { return record(TapeOp::kEqual, a, b); }
  friend TracedBool operator!=(Traced a, Traced b) { return record(TapeOp::kNotEqual, a, b); }

  Traced answer_;
};

}  // namespace fovea::detail
