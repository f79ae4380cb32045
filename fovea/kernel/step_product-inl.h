// SPDX-License-Identifier: Apache-2.0
// The product of a recurrent step: few rows, each wherever it lies, with columns of a packed
// weight. Include it below simd-inl.h. Its functions are in fovea::HWY_NAMESPACE.
#include <algorithm>

#if defined(FOVEA_KERNEL_STEP_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNEL_STEP_PRODUCT_INL_H_
#undef FOVEA_KERNEL_STEP_PRODUCT_INL_H_
#else
#define FOVEA_KERNEL_STEP_PRODUCT_INL_H_
#endif

#include "fovea/simd/simd-inl.h"
#include "fovea/simd/steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

inline constexpr int kLinesAtOnce = 2;

/// The rows of a block of registers with kVectors vectors each.
template <int kVectors>
inline constexpr int kStepRows = kManyRegisters ? 24 / kVectors
                                                : (HWY_TARGET <= HWY_AVX2 ? 12 : 8) / kVectors;

/// sums[r][v] = sum over k of left[r][k] b[k][v], k ascending. The columns [split, depth) of `left`
/// lie `gap` further.
template <class T>
struct StepProduct {
  const T* const* left;
  const T* b;
  index depth, split, gap;
  T* sums = nullptr;
  const T* const* ahead = nullptr;  ///< lines to ask for meanwhile, up to a null
};

template <int kRows, int kVectors, class T>
HWY_INLINE void MultiplyRows(const StepProduct<T>& p) {
  constexpr Tag<T> d;
  constexpr index kN = kLanes<T>, kWidth = kVectors * kN;
  Vector<T> sum[kRows][kVectors];
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT b = p.b;
  const T* const* ahead = p.ahead;
  // All lambdas are inlined: those that are not keep the sums in memory, and steps of an LSTM take
  // twice the time.
  const auto add_part = [&](index gap, index depth) __attribute__((always_inline)) {
    const T* a[kRows];
#pragma GCC unroll 24
    for (int r = 0; r < kRows; ++r) a[r] = p.left[r] + gap;
    // The shorter side of the block stays in registers for a step, so that 12 sums and it fit 16.
    const auto step = [&](index k) __attribute__((always_inline)) {
      if constexpr (kRows < kVectors) {
        Vector<T> value[kRows];
#pragma GCC unroll 24
        for (int r = 0; r < kRows; ++r) value[r] = InRegister(hn::Set(d, a[r][k]));
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const auto of_b = hn::LoadU(d, b + v * kN);
#pragma GCC unroll 24
          for (int r = 0; r < kRows; ++r) sum[r][v] = hn::MulAdd(value[r], of_b, sum[r][v]);
        }
      } else {
        Vector<T> row_of_b[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) row_of_b[v] = InRegister(hn::LoadU(d, b + v * kN));
#pragma GCC unroll 24
        for (int r = 0; r < kRows; ++r) {
          const auto value = hn::Set(d, a[r][k]);
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(value, row_of_b[v], sum[r][v]);
        }
      }
      b += kWidth;
    };
    const auto ask = [&]() __attribute__((always_inline)) {
      for (int i = 0; i < kLinesAtOnce && *ahead != nullptr; ++i) {
        constexpr int kToWrite = 1, kSecondCache = 2;
        __builtin_prefetch(*ahead++, kToWrite, kSecondCache);
      }
    };
    ForEachStep(depth, ask, step);
  };
  add_part(0, p.split);
  if (p.split < p.depth) add_part(p.split + p.gap, p.depth - p.split);
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, p.sums + r * kWidth + v * kN);
  }
}

/// As many rows as fit into registers; returns how many of `rows`.
template <int kVectors, int kRows, class T>
HWY_NOINLINE index MultiplySomeRows(const StepProduct<T>& p, index rows) {
  if (rows >= kRows) {
    MultiplyRows<kRows, kVectors>(p);
    return kRows;
  }
  if constexpr (kRows > 1) {
    return MultiplySomeRows<kVectors, (kRows > 4 ? 4 : kRows > 2 ? 2 : 1)>(p, rows);
  } else {
    return rows;
  }
}

/// The lines that a group of rows reads and writes beside its product.
template <class T>
struct LinesOfGroup {
  static constexpr index kMost = 24 * 8;
  const T* lines[kMost + 1];
  index count = 0;

  /// kVectors vectors from p on. Asking reads nothing, so it may go beyond the end of a row.
  template <int kVectors>
  HWY_INLINE void add(const T* p) {
    constexpr index kLine = 64 / sizeof(T);
    if (p == nullptr) return;
    for (index i = 0; i < kVectors * kLanes<T> && count < kMost; i += kLine) lines[count++] = p + i;
  }
};

/// Calls finish(first, end, sums) for groups of rows that cover [0, count), each after its product;
/// without `left` the sums are 0. list(row, lines) lists what finish will read for a row.
template <int kVectors, class T, class List, class Finish>
HWY_INLINE void ForEachGroup(StepProduct<T> p, index count, List&& list, Finish&& finish) {
  constexpr int kRows = kStepRows<kVectors>;
  HWY_ALIGN T sums[kRows * kVectors * kLanes<T>] = {};
  LinesOfGroup<T> lines;
  p.sums = sums;
  p.ahead = lines.lines;
  for (index row = 0; row < count;) {
    index rows = std::min<index>(kRows, count - row);
    if (p.left != nullptr) {
      lines.count = 0;
      for (index r = row; r < row + rows; ++r) list(r, lines);
      lines.lines[lines.count] = nullptr;
      rows = MultiplySomeRows<kVectors, kRows>(p, rows);
      p.left += rows;
    }
    finish(row, row + rows, sums);
    row += rows;
  }
}

/// Calls f(lanes, c, v) for the vectors v of a block of `vectors`, as far as they are columns:
/// vector v begins at column c = first + v kLanes < end.
template <class T, class F>
HWY_INLINE void ForEachVector(index first, index end, index vectors, F&& f) {
  for (index v = 0; v < vectors; ++v) {
    const index c = first + v * kLanes<T>;
    if (c + kLanes<T> <= end) {
      f(FullLanes<T>{}, c, v);
    } else if (c < end) {
      f(TailLanes<T>{{}, end - c}, c, v);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_KERNEL_STEP_PRODUCT_INL_H_
