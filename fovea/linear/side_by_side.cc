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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(KernelsOf);

SideBySideKernels side_by_side_kernels(index lanes) { return FOVEA_DISPATCH(KernelsOf)(lanes); }

}  // namespace fovea
#endif  // HWY_ONCE
