// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/linear/linear_block.h"

#include <algorithm>

#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/linear/linear_block.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/non_finite-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/rows-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

// sum = a b, or += a b: `transposed` reads a as [depth][rows]. b and sum have whole vectors.
enum class Operand { kAsItIs, kTransposed };
template <Into kInto, Operand kA = Operand::kAsItIs, class T>
void Multiply(Rows<const T> a, Rows<const T> b, Rows<T> sum) {
  const StridedMatrix<T> left = kA == Operand::kTransposed ? Transposed(a) : StridedMatrix<T>(a);
  TileProduct<kInto>(
      TileOperands<T>{.a = left, .b = b, .c = {sum.data, sum.rows, b.columns, sum.stride}});
}

// state [columns of b][columns of c, in whole vectors] += b^T c
template <class T>
void AddToState(Rows<const T> b, Rows<const T> c, Rows<T> state) {
  Scratch scratch;
  const Rows<const T> whole = ScaledRows(c, T{1}, scratch);
  Multiply<Into::kAdd, Operand::kTransposed>(b, whole, state);
}

// sum = a state
template <class T>
void TakeState(Rows<const T> a, Rows<const T> state, Rows<T> sum) {
  Multiply<Into::kOverwrite>(a, state, sum);
}

// sum += (a b^T, where it is kept) c.
template <class T>
void AddDirect(const DirectBlock<T>& block, Rows<T> sum) {
  const Rows<const T> a = block.a, b = block.b, c = block.c;
  Scratch scratch;
  const index stride = RoundUpToLanes<T>(b.rows);
  const Rows<T> bt(scratch.allocate<T>(b.columns * stride), b.columns, stride);
  RowsToLanes<T>(b, b.rows, bt.data, stride);
  const Rows<T> s(scratch.allocate<T>(a.rows * stride), a.rows, stride);
  Multiply<Into::kOverwrite>(a, Rows<const T>(bt), s);
  for (index r = 0; r < a.rows; ++r) std::fill(s[r] + block.kept_by(r), s[r] + b.rows, T{0});
  const FiniteOperand<T> operand(c, !block.keeps_all, scratch);
  const Rows<const T> packed = ScaledRows(operand.finite(), T{1}, scratch);
  Multiply<Into::kAdd>(Rows<const T>(s), packed, sum);
  operand.ForEachLeftOut([&](index y, const T* row) {
    for (index r = 0; r < a.rows; ++r) {
      for (index n = 0; y < block.kept_by(r) && n < c.columns; ++n) sum[r][n] += s[r][y] * row[n];
    }
  });
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
LinearKernels<T> KernelsFor() {
  return {AddToState<T>, TakeState<T>, AddDirect<T>, StoreScaled<T>, kLanes<T>};
}
auto Kernels() { return PerPrecision{KernelsFor<float>(), KernelsFor<double>()}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(Kernels);

template <class T>
LinearKernels<T> linear_kernels() {
  return FOVEA_DISPATCH(Kernels)().of<T>();
}

template LinearKernels<float> linear_kernels();
template LinearKernels<double> linear_kernels();

}  // namespace fovea::detail
#endif  // HWY_ONCE
