// SPDX-License-Identifier: Apache-2.0
// The definition of the operations of a program.
#include <cmath>
#include <cstdint>

#include "fovea/attention/lambda/derivative.h"
#include "fovea/attention/lambda/program.h"

namespace fovea::detail {

// Of whole numbers; a shift by what no number has as bits gives 0, or -1.
double bits_of(TapeOp op, double x, double y) {
  if (!(std::abs(x) < 0x1p62 && std::abs(y) < 0x1p62)) return 0;
  const auto a = static_cast<std::int64_t>(x), b = static_cast<std::int64_t>(y);
  const bool in_range = b >= 0 && b < 63;
  switch (op) {
    case TapeOp::kAnd:
      return static_cast<double>(a & b);
    case TapeOp::kOr:
      return static_cast<double>(a | b);
    case TapeOp::kXor:
      return static_cast<double>(a ^ b);
    case TapeOp::kShiftLeft:
      return in_range ? std::ldexp(x, static_cast<int>(b)) : 0;
    default:
      return static_cast<double>(a >> (in_range ? b : 63));
  }
}

namespace {

double value_of_one(TapeOp op, double a) {
  switch (op) {
    case TapeOp::kNeg:
      return -a;
    case TapeOp::kAbs:
      return a < 0 ? -a : a;
    case TapeOp::kExp:
      return std::exp(a);
    case TapeOp::kLog:
      return std::log(a);
    case TapeOp::kTanh:
      return std::tanh(a);
    case TapeOp::kSqrt:
      return std::sqrt(a);
    case TapeOp::kSin:
      return std::sin(a);
    case TapeOp::kCos:
      return std::cos(a);
    case TapeOp::kTanhSlope:
      return 1 - a * a;
    case TapeOp::kErf:
      return std::erf(a);
    case TapeOp::kFloor:
      return std::floor(a);
    case TapeOp::kRound:
      return std::nearbyint(a);
    default:
      return 0;
  }
}

}  // namespace

double tape_value(TapeOp op, double a, double b, double c) {
  if (operands(op) == 1) return value_of_one(op, a);
  switch (op) {
    case TapeOp::kAdd:
      return a + b;
    case TapeOp::kSub:
      return a - b;
    case TapeOp::kMul:
      return a * b;
    case TapeOp::kDiv:
      return a / b;
    case TapeOp::kMin:
      return b < a ? b : a;
    case TapeOp::kMax:
      return a < b ? b : a;
    case TapeOp::kLess:
      return a < b ? 1 : 0;
    case TapeOp::kLessEqual:
      return a <= b ? 1 : 0;
    case TapeOp::kEqual:
      return a == b ? 1 : 0;
    case TapeOp::kNotEqual:
      return a != b ? 1 : 0;
    case TapeOp::kSelect:
      return a != 0 ? b : c;
    case TapeOp::kPull:
      return a == 0 ? a : a * b;
    case TapeOp::kPower:
      return std::pow(a, b);
    case TapeOp::kFloorDivide:
      return std::floor(a / b);
    case TapeOp::kModulo:
      return a - b * std::floor(a / b);
    case TapeOp::kAnd:
    case TapeOp::kOr:
    case TapeOp::kXor:
    case TapeOp::kShiftLeft:
    case TapeOp::kShiftRight:
      return bits_of(op, a, b);
    default:
      return 0;
  }
}

double tape_partial(TapeOp op, int which, const std::array<double, 3>& operands, double result) {
  const auto [a, b, c] = operands;
  return partial(op, which, Operands<double>{a, b, c, result});
}

}  // namespace fovea::detail
