// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/linear_block.h"

#include <algorithm>

#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/linear_block.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/tile-inl.h"
#include "fovea/simd/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// The rows in whole vectors.
template <class T>
Rows<const T> Packed(Rows<const T> rows, Scratch& scratch) {
  const index width = RoundUpToLanes<T>(rows.columns);
  const Rows<T> packed(scratch.allocate<T>(rows.rows * width), rows.rows, width);
  PackRows(rows, T{1}, packed);
  return packed;
}

// state [columns of b][columns of c, in whole vectors] += b^T c
template <class T>
void AddToState(Rows<const T> b, Rows<const T> c, Rows<T> state) {
  Scratch scratch;
  const Rows<const T> packed = Packed(c, scratch);
  TileProduct<Into::kAdd>(TileOperands<T>{.rows = b.columns,
                                          .depth = b.rows,
                                          .lanes = packed.columns,
                                          .a = b.data,
                                          .a_row = 1,
                                          .a_depth = b.stride,
                                          .b = packed.data,
                                          .b_depth = packed.stride,
                                          .c = state.data,
                                          .c_row = state.stride});
}

// sum = a state
template <class T>
void TakeState(Rows<const T> a, Rows<const T> state, Rows<T> sum) {
  TileProduct<Into::kOverwrite>(TileOperands<T>{.rows = a.rows,
                                                .depth = a.columns,
                                                .lanes = state.columns,
                                                .a = a.data,
                                                .a_row = a.stride,
                                                .a_depth = 1,
                                                .b = state.data,
                                                .b_depth = state.stride,
                                                .c = sum.data,
                                                .c_row = sum.stride});
}

// sum += (a b^T, where it is kept) c. Rows of c with a NaN or an infinity must not meet the weight
// 0 of an x that does not keep them: they are taken out and added by hand.
template <class T>
void AddDirect(const DirectBlock<T>& block, Rows<T> sum) {
  const auto& [a, b, c, kept, keeps_all] = block;
  Scratch scratch;
  const index stride = RoundUpToLanes<T>(b.rows);
  T* const bt = scratch.allocate<T>(b.columns * stride);
  RowsToLanes<T>(b, b.rows, T{1}, bt, stride);
  const Rows<T> s(scratch.allocate<T>(a.rows * stride), a.rows, stride);
  TakeState<T>(a, {bt, b.columns, stride}, s);
  for (index r = 0; r < a.rows; ++r) std::fill(s[r] + block.kept_by(r), s[r] + b.rows, T{0});
  const bool poisoned = !keeps_all && AnyPoisoned(c);
  const Rows<const T> clean = Packed(poisoned ? WithoutPoison(c, scratch) : c, scratch);
  TileProduct<Into::kAdd>(TileOperands<T>{.rows = a.rows,
                                          .depth = b.rows,
                                          .lanes = clean.columns,
                                          .a = s.data,
                                          .a_row = stride,
                                          .a_depth = 1,
                                          .b = clean.data,
                                          .b_depth = clean.stride,
                                          .c = sum.data,
                                          .c_row = sum.stride});
  for (index y = 0; poisoned && y < c.rows; ++y) {
    if (!IsPoisoned(c[y], c.columns)) continue;
    for (index r = 0; r < a.rows; ++r) {
      for (index n = 0; y < block.kept_by(r) && n < c.columns; ++n) sum[r][n] += s[r][y] * c[y][n];
    }
  }
}

template <class T>
void StoreScaled(Rows<const T> sum, T scale, Rows<T> out) {
  for (index r = 0; r < out.rows; ++r) {
    const T* const from = sum[r];
    T* const to = out[r];
    ForEachLane<T>(out.columns, [&](auto lanes, index n) {
      lanes.Store(hn::Mul(lanes.Load(from + n), lanes.Set(scale)), to + n);
    });
  }
}

template <class T>
LinearKernels<T> Kernels() {
  return {AddToState<T>, TakeState<T>, AddDirect<T>, StoreScaled<T>, kLanes<T>};
}
LinearKernels<float> KernelsF32() { return Kernels<float>(); }
LinearKernels<double> KernelsF64() { return Kernels<double>(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(KernelsF32);
HWY_EXPORT(KernelsF64);

template <>
LinearKernels<float> linear_kernels() {
  return FOVEA_DISPATCH(KernelsF32)();
}
template <>
LinearKernels<double> linear_kernels() {
  return FOVEA_DISPATCH(KernelsF64)();
}

}  // namespace fovea
#endif  // HWY_ONCE
