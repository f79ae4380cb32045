// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/side_by_side.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/linear/side_by_side.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

// A sum must be in the order of the columns, so one problem waits for each addition (4 cycles a
// value). Eight have as many sums that do not wait for each other, and share what is read of the
// row: with AVX-512 a value costs them together about what it costs one.
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Lanes of L problems, in as few vectors as they fill.
template <index L>
struct ProblemLanes {
  static constexpr hn::CappedTag<double, static_cast<std::size_t>(L)> d{};
  static constexpr index kWidth = static_cast<index>(hn::MaxLanes(d));
  static constexpr index kVectors = L / kWidth;
  using V = hn::Vec<hn::CappedTag<double, static_cast<std::size_t>(L)>>;
};

template <index L>
void AddProducts(const SparseRow& row, const double* weights, double* sums) {
  using P = ProblemLanes<L>;
  typename P::V own[P::kVectors];
  for (index v = 0; v < P::kVectors; ++v) own[v] = hn::LoadU(P::d, sums + v * P::kWidth);
  for (std::size_t n = 0; n < row.columns.size(); ++n) {
    const double* const w = weights + index{row.columns[n]} * L;
    const auto value = hn::Set(P::d, static_cast<double>(row.values[n]));
    for (index v = 0; v < P::kVectors; ++v) {
      own[v] = hn::Add(own[v], hn::Mul(hn::LoadU(P::d, w + v * P::kWidth), value));
    }
  }
  for (index v = 0; v < P::kVectors; ++v) hn::StoreU(own[v], P::d, sums + v * P::kWidth);
}

template <index L>
void AddRow(const SparseRow& row, const double* steps, const double* squares, double* weights) {
  using P = ProblemLanes<L>;
  typename P::V own[P::kVectors];
  for (index v = 0; v < P::kVectors; ++v) own[v] = hn::LoadU(P::d, steps + v * P::kWidth);
  const auto add = [&](auto step_of) {
    for (std::size_t n = 0; n < row.columns.size(); ++n) {
      const index at = index{row.columns[n]} * L;
      const auto value = hn::Set(P::d, static_cast<double>(row.values[n]));
      for (index v = 0; v < P::kVectors; ++v) {
        double* const w = weights + at + v * P::kWidth;
        const auto moved = hn::Mul(step_of(v, at + v * P::kWidth), value);
        hn::StoreU(hn::Add(hn::LoadU(P::d, w), moved), P::d, w);
      }
    }
  };
  if (squares == nullptr) return add([&](index v, index) { return own[v]; });
  add([&](index v, index at) { return hn::Mul(own[v], hn::LoadU(P::d, squares + at)); });
}

SideBySideKernels KernelsOf(index lanes) {
  switch (lanes) {
    case 1:
      return {AddProducts<1>, AddRow<1>};
    case 2:
      return {AddProducts<2>, AddRow<2>};
    case 4:
      return {AddProducts<4>, AddRow<4>};
    default:
      return {AddProducts<8>, AddRow<8>};
  }
}

// Lines of WideLine::kLanes problems, in as few vectors as they fill.
constexpr hn::CappedTag<float, WideLine::kLanes> kWide{};
constexpr std::size_t kWideWidth = hn::MaxLanes(kWide),
                      kWideVectors = WideLine::kLanes / kWideWidth;
using WideVector = hn::Vec<hn::CappedTag<float, WideLine::kLanes>>;

// sums += value_of(n) times line_of(n), in two sums by turns: one addition need not wait for the
// one before.
template <class ValueOf, class LineOf>
HWY_INLINE void AddLines(std::size_t count, ValueOf value_of, LineOf line_of, WideLine& sums) {
  WideVector own[2][kWideVectors];
  for (std::size_t v = 0; v < kWideVectors; ++v) {
    own[0][v] = hn::Load(kWide, sums.lane + v * kWideWidth);
    own[1][v] = hn::Zero(kWide);
  }
  const auto add = [&](std::size_t n, WideVector* to) {
    const float* const line = line_of(n).lane;
    const auto value = hn::Set(kWide, value_of(n));
    for (std::size_t v = 0; v < kWideVectors; ++v) {
      to[v] = hn::Add(to[v], hn::Mul(hn::Load(kWide, line + v * kWideWidth), value));
    }
  };
  std::size_t n = 0;
  for (; n + 1 < count; n += 2) add(n, own[0]), add(n + 1, own[1]);
  if (n < count) add(n, own[0]);
  for (std::size_t v = 0; v < kWideVectors; ++v) {
    hn::Store(hn::Add(own[0][v], own[1][v]), kWide, sums.lane + v * kWideWidth);
  }
}

void AddWideProducts(const SparseRow& row, const WideLine* lines, index stride, WideLine& sums) {
  AddLines(
      row.columns.size(), [&](std::size_t n) { return row.values[n]; },
      [&](std::size_t n) -> const WideLine& { return lines[row.columns[n] * stride]; }, sums);
}

void AddWideSquares(const SparseRow& row, const WideLine* lines, index stride, WideLine& sums) {
  static constexpr WideLine kOnes = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  AddLines(
      row.columns.size(), [&](std::size_t n) { return row.values[n] * row.values[n]; },
      [&](std::size_t n) -> const WideLine& {
        return stride == 1 ? kOnes : lines[row.columns[n] * stride + 1];
      },
      sums);
}

void AddWideRow(const SparseRow& row, const WideLine& steps, index stride, WideLine* lines) {
  WideVector own[kWideVectors];
  for (std::size_t v = 0; v < kWideVectors; ++v) {
    own[v] = hn::Load(kWide, steps.lane + v * kWideWidth);
  }
  const auto add = [&](auto step_of) {
    for (std::size_t n = 0; n < row.columns.size(); ++n) {
      WideLine* const line = lines + row.columns[n] * stride;
      const auto value = hn::Set(kWide, row.values[n]);
      for (std::size_t v = 0; v < kWideVectors; ++v) {
        float* const w = line->lane + v * kWideWidth;
        const auto moved = hn::Mul(step_of(v, line), value);
        hn::Store(hn::Add(hn::Load(kWide, w), moved), kWide, w);
      }
    }
  };
  if (stride == 1) return add([&](std::size_t v, const WideLine*) { return own[v]; });
  add([&](std::size_t v, const WideLine* line) {
    return hn::Mul(own[v], hn::Load(kWide, line[1].lane + v * kWideWidth));
  });
}

// e^x for x <= 0; below -80 that of -80. No product is fused, unlike those of Exp.
WideVector ExpOfNegative(WideVector x) {
  constexpr float kLog2E = 1.44269504F, kLeast = -80;
  constexpr float kOfPowers[] = {
      0.00015353362F, 0.0013398875F, 0.00961843692F, 0.0555033237F, 0.240226477F, 0.693147182F, 1};
  const hn::RebindToSigned<decltype(kWide)> di;
  const auto t = hn::Mul(hn::Max(x, hn::Set(kWide, kLeast)), hn::Set(kWide, kLog2E));
  const auto whole = hn::Round(t), f = hn::Sub(t, whole);
  auto sum = hn::Zero(kWide);
  for (const float factor : kOfPowers) sum = hn::Add(hn::Mul(sum, f), hn::Set(kWide, factor));
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, whole), hn::Set(di, 127)));
  return hn::Mul(sum, hn::BitCast(kWide, power));
}

// 1 / (1 + e^-x), the smaller of it and the rest, and their product.
struct Sigmoid {
  explicit Sigmoid(WideVector x) {
    const auto one = hn::Set(kWide, 1.0F), e = ExpOfNegative(hn::Neg(hn::Abs(x)));
    const auto large = hn::Div(one, hn::Add(one, e));
    is_large = hn::Ge(x, hn::Zero(kWide));
    small = hn::Mul(e, large);
    slope = hn::Mul(small, large);
    value = hn::IfThenElse(is_large, large, small);
  }
  // Their difference: of two near 1 that of what is left of them.
  WideVector minus(const Sigmoid& other) const {
    return hn::IfThenElse(hn::And(is_large, other.is_large), hn::Sub(other.small, small),
                          hn::Sub(value, other.value));
  }
  hn::Mask<decltype(kWide)> is_large;
  WideVector small, slope, value;
};

// With u the log-odds of a, the derivative of the dual problem is  square (a - old) + margin + u.
// It ascends in u, from below 0 at one of old u and -margin to above 0 at the other, and bends up
// where u < 0 and down where u > 0. So Newton's method descends to its root from 0, or from the
// nearest point to it in between, without a step too far.
void MoveDuals(const WideLine& logits, const WideLine& active, WideRow& row, WideLine& steps,
               WideLine& gaps) {
  constexpr int kMostSteps = 30;
  const auto zero = hn::Zero(kWide), near = hn::Set(kWide, 1e-4F);
  for (std::size_t v = 0; v < kWideVectors; ++v) {
    const std::size_t at = v * kWideWidth;
    const auto is_active = hn::Gt(hn::Load(kWide, active.lane + at), zero);
    const auto y = hn::Load(kWide, row.y.lane + at), cost = hn::Load(kWide, row.cost.lane + at);
    const auto margin = hn::Mul(y, hn::Load(kWide, logits.lane + at));
    const auto curve = hn::Mul(cost, hn::Load(kWide, row.square.lane + at));
    const auto old = hn::Load(kWide, row.dual.lane + at), target = hn::Neg(margin);
    const Sigmoid before(old);
    hn::Store(hn::Abs(Sigmoid(target).minus(before)), kWide, gaps.lane + at);
    const auto low = hn::Min(old, target), high = hn::Max(old, target);
    auto u = hn::Min(hn::Max(zero, low), high);
    auto is_open = is_active;
    for (int step = 0; step < kMostSteps && !hn::AllFalse(kWide, is_open); ++step) {
      const Sigmoid now(u);
      const auto gradient = hn::Add(hn::Add(margin, u), hn::Mul(curve, now.minus(before)));
      const auto second = hn::Add(hn::Set(kWide, 1.0F), hn::Mul(curve, now.slope));
      const auto next = hn::Min(hn::Max(hn::Sub(u, hn::Div(gradient, second)), low), high);
      const auto is_near = hn::Le(hn::Abs(hn::Sub(next, u)), near);
      u = hn::IfThenElse(is_open, next, u);
      is_open = hn::AndNot(is_near, is_open);
    }
    u = hn::IfThenElse(is_active, u, old);
    const auto grown = hn::Mul(hn::Mul(y, cost), Sigmoid(u).minus(before));
    hn::Store(hn::IfThenElseZero(is_active, grown), kWide, steps.lane + at);
    hn::Store(u, kWide, row.dual.lane + at);
  }
}

WideKernels WideKernelsOf() { return {AddWideProducts, AddWideSquares, AddWideRow, MoveDuals}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(KernelsOf);
HWY_EXPORT(WideKernelsOf);

SideBySideKernels side_by_side_kernels(index lanes) { return FOVEA_DISPATCH(KernelsOf)(lanes); }

WideKernels wide_kernels() { return FOVEA_DISPATCH(WideKernelsOf)(); }

}  // namespace fovea
#endif  // HWY_ONCE
