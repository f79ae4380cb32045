// SPDX-License-Identifier: Apache-2.0
// The derivatives of the operations of a program, of plain numbers and of symbols.
#pragma once

#include <cmath>
#include <numbers>

#include "fovea/attention/lambda/traced.h"

namespace fovea::detail {

inline double tanh_slope(double t) { return 1 - t * t; }
inline double floor_divide(double a, double b) { return std::floor(a / b); }
inline double select(bool condition, double a, double b) { return condition ? a : b; }

/// The operands of a step, as double or Traced.
template <class Number>
struct Operands {
  Number a, b, c;
  Number result;
};

/// d result / d operand `which` (0, 1, 2). At a kink it is that of the branch which tape_value()
/// takes.
template <class Number>
Number partial(TapeOp op, int which, const Operands<Number>& x) {
  using std::cos, std::sin, std::exp, std::log, std::pow;
  const Number one = 1, zero = 0;
  switch (op) {
    case TapeOp::kSub:
      return which == 0 ? one : -one;
    case TapeOp::kMul:
      return which == 0 ? x.b : x.a;
    case TapeOp::kDiv:
      return which == 0 ? one / x.b : -x.result * (one / x.b);
    case TapeOp::kNeg:
      return -one;
    case TapeOp::kAbs:
      return select(x.a < zero, -one, one);
    case TapeOp::kMin:
      return select(x.b < x.a, which == 0 ? zero : one, which == 0 ? one : zero);
    case TapeOp::kMax:
      return select(x.a < x.b, which == 0 ? zero : one, which == 0 ? one : zero);
    case TapeOp::kExp:
      return x.result;
    case TapeOp::kLog:
      return one / x.a;
    case TapeOp::kTanh:
      return tanh_slope(x.result);
    case TapeOp::kSqrt:
      return 0.5 / x.result;
    case TapeOp::kSin:
      return cos(x.a);
    case TapeOp::kCos:
      return -sin(x.a);
    case TapeOp::kErf:
      return 2 * std::numbers::inv_sqrtpi * exp(-(x.a * x.a));
    case TapeOp::kPower:
      if (which == 0) return x.b * pow(x.a, x.b - one);
      return select(x.a == zero, zero, x.result * log(x.a));
    case TapeOp::kModulo:
      return which == 0 ? one : -floor_divide(x.a, x.b);
    case TapeOp::kSelect:
      if (which == 0) return zero;
      return select(x.a != zero, which == 1 ? one : zero, which == 1 ? zero : one);
    default:
      return op == TapeOp::kAdd ? one : zero;  // comparisons have no gradient
  }
}

}  // namespace fovea::detail
