// SPDX-License-Identifier: Apache-2.0
// The steps of a program run over strips of a tile and its tables; here are these, and the
// operations on strips.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "fovea/attention/lambda/lanes/lane_program.h"
#include "fovea/base/memory.h"

#if defined(FOVEA_ATTENTION_LAMBDA_LANES_LANE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_LAMBDA_LANES_LANE_MATH_INL_H_
#undef FOVEA_ATTENTION_LAMBDA_LANES_LANE_MATH_INL_H_
#else
#define FOVEA_ATTENTION_LAMBDA_LANES_LANE_MATH_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

// Values of a strip at most. Sixteen rows of a tile of 64 queries are whole lines of a table of
// floats, whose rows are columns there; programs of many strips take half, to leave them in L1.
constexpr index kStrip = 1024;
static_assert(kStrip / 2 % kLanes<float> == 0 && kStrip / 2 % kLanes<double> == 0);
inline index StripLength(const LaneProgram& lane_program) {
  constexpr index kFew = 6;
  return lane_program.strips() <= kFew ? kStrip : kStrip / 2;
}

// Rows [row, row + rows) x columns [column, column + columns) of a tile, `width` values of a strip
// to a row: whole vectors.
struct StripPart {
  index row, rows, column, columns, width;
  index size() const { return rows * width; }
};

// Values for each diagonal of the tile: column - row = 1 - rows, ...
template <class T>
struct Diagonals {
  Scratch scratch;
  const T* values[LaneTape::kMost];
};

// The steps that read tables, and add to their gradients.
struct LaneTables {
  const LaneTape& program;
  double* sums;      // for gradients without memory of their own
  int beyond;        // the read of an index beyond its axis
  double* diagonal;  // [stores][rows + columns + a vector]: sums over the diagonals of the tile
  index diagonals;   // how many values one of them has
};

template <class T>
struct LaneRun {
  const LaneProgram& lane_program;
  const LaneTile<T>& tile;
  const Diagonals<T>& diagonals;
  T* strips[LaneTape::kMost + 2];
  double* sums;
  LaneTables* tables;

  void Step(const LaneStep& step, const StripPart& part) const;
  void Unary(const LaneStep& step, index n) const;
  void Binary(const LaneStep& step, index n) const;
  void Select(const LaneStep& step, index n) const;
  void Places(const LaneStep& step, const StripPart& part) const;
  void Load(const LaneStep& step, const StripPart& part) const;
  void Gather(const LaneStep& step, const StripPart& part) const;
  void Store(const LaneStep& step, const StripPart& part) const;
  void SumDiagonals(const LaneStep& step, const StripPart& part) const;
  void StoreDiagonals() const;
  void Bits(const LaneStep& step, index n) const;

  template <class F>
  HWY_INLINE void Map(const LaneStep& step, index n, F&& f) const {
    constexpr Tag<T> d;
    const T* a = strips[step.a];
    T* to = strips[step.to];
    for (index i = 0; i < n; i += kLanes<T>) hn::StoreU(f(d, hn::LoadU(d, a + i)), d, to + i);
  }
  template <class F>
  HWY_INLINE void Map2(const LaneStep& step, index n, F&& f) const {
    constexpr Tag<T> d;
    const T* a = strips[step.a];
    const T* b = strips[step.b];
    T* to = strips[step.to];
    for (index i = 0; i < n; i += kLanes<T>) {
      hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, to + i);
    }
  }
  // 1 where f is true, 0 elsewhere.
  template <class F>
  HWY_INLINE void Compare(const LaneStep& step, index n, F&& f) const {
    Map2(step, n,
         [&](auto d, auto a, auto b) { return hn::IfThenElseZero(f(a, b), hn::Set(d, T{1})); });
  }
};

template <class T>
void LaneRun<T>::Unary(const LaneStep& step, index n) const {
  const T factor = static_cast<T>(step.value);
  const auto map = [&](auto&& f) { Map(step, n, f); };
  const auto per_lane = [&](auto&& f) {
    Map(step, n, [&](auto d, auto a) { return PerLane(d, a, f); });
  };
  switch (step.op) {
    case TapeOp::kNeg:
      return map([](auto, auto a) { return hn::Neg(a); });
    case TapeOp::kAbs:
      return map([](auto, auto a) { return hn::Abs(a); });
    case TapeOp::kExp:
      return map([&](auto d, auto a) { return Exp(d, hn::Mul(a, hn::Set(d, factor))); });
    case TapeOp::kLog:
      return per_lane([](T x) { return std::log(x); });
    case TapeOp::kTanh:
      return map([&](auto d, auto a) { return Tanh(d, hn::Mul(a, hn::Set(d, factor))); });
    case TapeOp::kTanhSlope:
      return map([](auto d, auto a) { return hn::NegMulAdd(a, a, hn::Set(d, T{1})); });
    case TapeOp::kSqrt:
      return map([](auto, auto a) { return hn::Sqrt(a); });
    case TapeOp::kSin:
      return per_lane([](T x) { return std::sin(x); });
    case TapeOp::kErf:
      return per_lane([](T x) { return std::erf(x); });
    case TapeOp::kFloor:
      return map([](auto, auto a) { return hn::Floor(a); });
    case TapeOp::kRound:
      return map([](auto, auto a) { return hn::Round(a); });
    default:
      return per_lane([](T x) { return std::cos(x); });
  }
}

// a * b, but 0 where a is 0, even if b is NaN or infinite. It uses Eq and not Ne, which is false
// for NaN on some instruction sets: a NaN in a must be passed on.
template <class D, class V>
HWY_INLINE V PullProduct(D d, V a, V b) {
  return hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), hn::Mul(a, b));
}

// Whole numbers, which the lanes hold exactly.
template <class T>
void LaneRun<T>::Bits(const LaneStep& step, index n) const {
  const T* a = strips[step.a];
  const T* b = strips[step.b];
  T* to = strips[step.to];
  for (index i = 0; i < n; ++i) to[i] = static_cast<T>(bits_of(step.op, a[i], b[i]));
}

// The largest whole number not above a / b. Rounding may make the quotient the next one: a - b
// floor() is then negative, and exact.
template <class D, class V>
HWY_INLINE V FloorDivide(D d, V a, V b) {
  const auto quotient = hn::Floor(hn::Div(a, b));
  const auto rest = hn::NegMulAdd(quotient, b, a);
  const auto beyond = hn::Lt(hn::Mul(rest, b), hn::Zero(d));
  return hn::IfThenElse(beyond, hn::Sub(quotient, hn::Set(d, 1)), quotient);
}

template <class T>
void LaneRun<T>::Binary(const LaneStep& step, index n) const {
  const auto map = [&](auto&& f) { Map2(step, n, f); };
  const auto compare = [&](auto&& f) { Compare(step, n, f); };
  switch (step.op) {
    case TapeOp::kAdd:
      return map([](auto, auto a, auto b) { return hn::Add(a, b); });
    case TapeOp::kSub:
      return map([](auto, auto a, auto b) { return hn::Sub(a, b); });
    case TapeOp::kMul:
      return map([](auto, auto a, auto b) { return hn::Mul(a, b); });
    case TapeOp::kDiv:
      return map([](auto, auto a, auto b) { return hn::Div(a, b); });
    case TapeOp::kMin:
      return map([](auto, auto a, auto b) { return hn::IfThenElse(hn::Lt(b, a), b, a); });
    case TapeOp::kMax:
      return map([](auto, auto a, auto b) { return hn::IfThenElse(hn::Lt(a, b), b, a); });
    case TapeOp::kLess:
      return compare([](auto a, auto b) { return hn::Lt(a, b); });
    case TapeOp::kLessEqual:
      return compare([](auto a, auto b) { return hn::Le(a, b); });
    case TapeOp::kEqual:
      return compare([](auto a, auto b) { return hn::Eq(a, b); });
    case TapeOp::kNotEqual:
      return compare([](auto a, auto b) { return hn::Not(hn::Eq(a, b)); });
    case TapeOp::kPower:
      for (index i = 0; i < n; ++i) {
        strips[step.to][i] = std::pow(strips[step.a][i], strips[step.b][i]);
      }
      return;
    case TapeOp::kFloorDivide:
      return map([](auto d, auto a, auto b) { return FloorDivide(d, a, b); });
    case TapeOp::kModulo:
      return map([](auto d, auto a, auto b) { return hn::NegMulAdd(FloorDivide(d, a, b), b, a); });
    case TapeOp::kAnd:
    case TapeOp::kOr:
    case TapeOp::kXor:
    case TapeOp::kShiftLeft:
    case TapeOp::kShiftRight:
      return Bits(step, n);
    default:
      return map([](auto d, auto a, auto b) { return PullProduct(d, a, b); });
  }
}

template <class T>
void LaneRun<T>::Select(const LaneStep& step, index n) const {
  constexpr Tag<T> d;
  for (index i = 0; i < n; i += kLanes<T>) {
    const auto refused = hn::Eq(hn::LoadU(d, strips[step.a] + i), hn::Zero(d));
    const auto value =
        hn::IfThenElse(refused, hn::LoadU(d, strips[step.c] + i), hn::LoadU(d, strips[step.b] + i));
    hn::StoreU(value, d, strips[step.to] + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_LAMBDA_LANES_LANE_MATH_INL_H_
