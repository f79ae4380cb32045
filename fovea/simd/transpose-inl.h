// SPDX-License-Identifier: Apache-2.0
// Rows become lanes and lanes rows, a square of vectors at a time. Include it from a kernel, below
// simd-inl.h.
#include "fovea/base/view.h"

#if defined(FOVEA_SIMD_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_TRANSPOSE_INL_H_
#undef FOVEA_SIMD_TRANSPOSE_INL_H_
#else
#define FOVEA_SIMD_TRANSPOSE_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE index RoundUpToLanes(index n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

/// Transposes a square of kLanes x kLanes values: from[r] is row r, to[c] receives column c.
/// First the 128-bit blocks, then the matrix of blocks.
template <class T>
HWY_INLINE void TransposeSquare(const T* const* from, T* const* to) {
#if HWY_TARGET == HWY_SCALAR
  to[0][0] = from[0][0];
#else
  constexpr Tag<T> d;
  constexpr index kBlock = 16 / sizeof(T);
  constexpr index kBlocks = kLanes<T> / kBlock;
  Vector<T> v[kLanes<T>];
#pragma GCC unroll 16
  for (index g = 0; g < kBlocks; ++g) {
    const T* const* rows = from + g * kBlock;
    if constexpr (kBlock == 4) {
      const auto a = hn::LoadU(d, rows[0]), b = hn::LoadU(d, rows[1]);
      const auto c = hn::LoadU(d, rows[2]), e = hn::LoadU(d, rows[3]);
      const auto ac0 = hn::InterleaveLower(d, a, c), ac1 = hn::InterleaveUpper(d, a, c);
      const auto be0 = hn::InterleaveLower(d, b, e), be1 = hn::InterleaveUpper(d, b, e);
      v[g * 4 + 0] = hn::InterleaveLower(d, ac0, be0);
      v[g * 4 + 1] = hn::InterleaveUpper(d, ac0, be0);
      v[g * 4 + 2] = hn::InterleaveLower(d, ac1, be1);
      v[g * 4 + 3] = hn::InterleaveUpper(d, ac1, be1);
    } else {
      const auto a = hn::LoadU(d, rows[0]), b = hn::LoadU(d, rows[1]);
      v[g * 2 + 0] = hn::InterleaveLower(d, a, b);
      v[g * 2 + 1] = hn::InterleaveUpper(d, a, b);
    }
  }
  // v[g * kBlock + e] holds, in block b, rows g * kBlock ... of column b * kBlock + e.
#pragma GCC unroll 4
  for (index e = 0; e < kBlock; ++e) {
    if constexpr (kBlocks == 1) {
      hn::StoreU(v[e], d, to[e]);
    } else if constexpr (kBlocks == 2) {
      hn::StoreU(hn::ConcatLowerLower(d, v[kBlock + e], v[e]), d, to[e]);
      hn::StoreU(hn::ConcatUpperUpper(d, v[kBlock + e], v[e]), d, to[kBlock + e]);
    } else {
      static_assert(kBlocks == 4);
      const auto a = v[e], b = v[kBlock + e], c = v[2 * kBlock + e], f = v[3 * kBlock + e];
      const auto even0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      const auto odd0 = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      const auto even1 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(f), c);
      const auto odd1 = hn::OddEvenBlocks(f, hn::SwapAdjacentBlocks(c));
      hn::StoreU(hn::ConcatLowerLower(d, even1, even0), d, to[e]);
      hn::StoreU(hn::ConcatLowerLower(d, odd1, odd0), d, to[kBlock + e]);
      hn::StoreU(hn::ConcatUpperUpper(d, even1, even0), d, to[2 * kBlock + e]);
      hn::StoreU(hn::ConcatUpperUpper(d, odd1, odd0), d, to[3 * kBlock + e]);
    }
  }
#endif
}

/// lanes[c][r] = factor * rows[r][c] for r < count; lanes beyond count, up to `stride` (a multiple
/// of kLanes), become 0.
template <class T>
void RowsToLanes(Rows<const T> rows, index count, T factor, T* lanes, index stride) {
  constexpr index kN = kLanes<T>;
  constexpr Tag<T> d;
  HWY_ALIGN T zeros[kN] = {};
  const index whole = rows.columns / kN * kN;
  for (index r0 = 0; r0 < stride; r0 += kN) {
    for (index c0 = 0; c0 < whole; c0 += kN) {
      const T* from[kN];
      T* to[kN];
      for (index i = 0; i < kN; ++i) {
        from[i] = r0 + i < count ? rows[r0 + i] + c0 : zeros;
        to[i] = lanes + (c0 + i) * stride + r0;
      }
      TransposeSquare(from, to);
    }
    for (index c = whole; c < rows.columns; ++c) {
      for (index i = 0; i < kN; ++i)
        lanes[c * stride + r0 + i] = r0 + i < count ? rows[r0 + i][c] : T{0};
    }
  }
  if (factor == T{1}) return;
  const auto by = hn::Set(d, factor);
  for (index i = 0; i < rows.columns * stride; i += kN) {
    hn::Store(hn::Mul(hn::Load(d, lanes + i), by), d, lanes + i);
  }
}

/// rows[r][c] = lanes[c][r] for r < count.
template <class T>
void LanesToRows(const T* lanes, index stride, index count, Rows<T> rows) {
  constexpr index kN = kLanes<T>;
  HWY_ALIGN T unused[kN];
  const index whole = rows.columns / kN * kN;
  for (index r0 = 0; r0 < count; r0 += kN) {
    for (index c0 = 0; c0 < whole; c0 += kN) {
      const T* from[kN];
      T* to[kN];
      for (index i = 0; i < kN; ++i) {
        from[i] = lanes + (c0 + i) * stride + r0;
        to[i] = r0 + i < count ? rows[r0 + i] + c0 : unused;
      }
      TransposeSquare(from, to);
    }
    for (index c = whole; c < rows.columns; ++c) {
      for (index i = 0; i < kN && r0 + i < count; ++i) rows[r0 + i][c] = lanes[c * stride + r0 + i];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_TRANSPOSE_INL_H_
