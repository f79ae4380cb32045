// SPDX-License-Identifier: Apache-2.0
// Rows of a matrix, copied, scaled and multiplied, for one instruction set.
#include <algorithm>

#include "fovea/base/memory.h"
#include "fovea/base/view.h"

#if defined(FOVEA_SIMD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_ROWS_INL_H_
#undef FOVEA_SIMD_ROWS_INL_H_
#else
#define FOVEA_SIMD_ROWS_INL_H_
#endif

#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// to = factor * rows, in rows of whole vectors: columns beyond those of `rows` become 0.
template <class T>
void PackRows(Rows<const T> rows, T factor, Rows<T> to) {
  for (index r = 0; r < rows.rows; ++r) {
    const T* const from = rows[r];
    T* const row = to[r];
    ForEachLane<T>(rows.columns, [&](auto lanes, index c) {
      hn::Store(hn::Mul(lanes.Load(from + c), lanes.Set(factor)), Tag<T>(), row + c);
    });
  }
}

/// A copy of factor * rows, in rows of whole vectors.
template <class T>
Rows<T> ScaledRows(Rows<const T> rows, T factor, Scratch& scratch) {
  const index width = RoundUpToLanes<T>(rows.columns);
  const Rows<T> scaled(scratch.allocate<T>(rows.rows * width), rows.rows, width);
  PackRows(rows, factor, scaled);
  return scaled;
}

template <class T>
void CopyRows(Rows<const T> rows, Rows<T> to) {
  for (index r = 0; r < rows.rows; ++r) {
    const T* const from = rows[r];
    T* const row = to[r];
    ForEachLane<T>(rows.columns,
                   [&](auto lanes, index c) { lanes.Store(lanes.Load(from + c), row + c); });
  }
}

/// dots[r] += the terms of a[r] . b[r] from `column` on. Eight chains hide the latency.
template <class T>
void AddRowDots(Rows<const T> a, Rows<const T> b, index column, T* dots) {
  constexpr index kChains = 8;
  constexpr hn::CappedTag<T, 1> d;
  for (index r = 0; r < a.rows; r += kChains) {
    const index rows = std::min(kChains, a.rows - r);
    hn::Vec<decltype(d)> sum[kChains];
    for (index i = 0; i < rows; ++i) sum[i] = hn::Set(d, dots[r + i]);
    for (index c = column; c < a.columns; ++c) {
      for (index i = 0; i < rows; ++i) {
        sum[i] = hn::MulAdd(hn::Set(d, a[r + i][c]), hn::Set(d, b[r + i][c]), sum[i]);
      }
    }
    for (index i = 0; i < rows; ++i) dots[r + i] = hn::GetLane(sum[i]);
  }
}

/// dots[r] = a[r] . b[r], in the order of the product that makes dp, one row after another: where
/// one weight is 1 and the rest are 0, dp - delta is then exactly 0, as it should be. A lane for
/// each row, as far as there are whole squares.
template <class T>
void RowDots(Rows<const T> a, Rows<const T> b, T* dots) {
  constexpr index kN = kLanes<T>;
  constexpr Tag<T> d;
  HWY_ALIGN T a_lanes[kN * kN], b_lanes[kN * kN];
  const index rows = a.rows / kN * kN, columns = a.columns / kN * kN;
  for (index r = 0; r < rows; r += kN) {
    auto sum = hn::Zero(d);
    for (index c = 0; c < columns; c += kN) {
      TransposeSquare(a[r] + c, a.stride, a_lanes, kN);
      TransposeSquare(b[r] + c, b.stride, b_lanes, kN);
      for (index i = 0; i < kN; ++i) {
        sum = hn::MulAdd(hn::Load(d, a_lanes + i * kN), hn::Load(d, b_lanes + i * kN), sum);
      }
    }
    hn::StoreU(sum, d, dots + r);
  }
  AddRowDots(a.slice(0, rows), b.slice(0, rows), columns, dots);
  std::fill(dots + rows, dots + a.rows, T{0});
  AddRowDots(a.slice(rows, a.rows), b.slice(rows, a.rows), 0, dots + rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_ROWS_INL_H_
