// SPDX-License-Identifier: Apache-2.0
// Rows become lanes and lanes rows, a square of vectors at a time. Include it from a kernel, below
// simd-inl.h.
#include <algorithm>
#include <functional>

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

#if HWY_TARGET <= HWY_AVX2
/// TransposeSquare of 8 x 8 floats. A vector takes the blocks of four columns of two rows while
/// they are loaded, so no shuffle has to move blocks.
HWY_INLINE void TransposeEight(const float* from, index from_stride, float* to, index to_stride) {
  constexpr hn::CappedTag<float, 8> d;
  constexpr hn::Half<decltype(d)> half;
#pragma GCC unroll 2
  for (index c = 0; c < 8; c += 4) {
    const auto rows = [&](index i) {  // row i and i + 4
      const float* const row = from + i * from_stride + c;
      return hn::Combine(d, hn::LoadU(half, row + 4 * from_stride), hn::LoadU(half, row));
    };
    const auto a = rows(0), b = rows(1), e = rows(2), f = rows(3);
    const auto ae0 = hn::InterleaveLower(d, a, e), ae1 = hn::InterleaveUpper(d, a, e);
    const auto bf0 = hn::InterleaveLower(d, b, f), bf1 = hn::InterleaveUpper(d, b, f);
    hn::StoreU(hn::InterleaveLower(d, ae0, bf0), d, to + c * to_stride);
    hn::StoreU(hn::InterleaveUpper(d, ae0, bf0), d, to + (c + 1) * to_stride);
    hn::StoreU(hn::InterleaveLower(d, ae1, bf1), d, to + (c + 2) * to_stride);
    hn::StoreU(hn::InterleaveUpper(d, ae1, bf1), d, to + (c + 3) * to_stride);
  }
}
#endif

/// Transposes a square of kN x kN values, of whole vectors or of their halves: to[c][r] =
/// from[r][c], where change() has been applied to each vector of `from`. First the 128-bit blocks,
/// then the matrix of blocks. Not inlined: a loop around it would keep 32 addresses, more than
/// there are registers.
template <class T, index kN = kLanes<T>, class Change = std::identity>
HWY_NOINLINE void TransposeSquare(const T* from, [[maybe_unused]] index from_stride, T* to,
                                  [[maybe_unused]] index to_stride, Change change = {}) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = hn::GetLane(change(hn::Set(Tag<T>(), from[0])));
#else
#if HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<T, float> && kN % 8 == 0 && std::is_same_v<Change, std::identity>) {
    for (index r = 0; r < kN; r += 8) {
      for (index c = 0; c < kN; c += 8) {
        TransposeEight(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
    }
    return;
  }
#endif
  constexpr hn::CappedTag<T, static_cast<std::size_t>(kN)> d;
  using V = hn::VFromD<decltype(d)>;
  constexpr index kBlock = 16 / sizeof(T);
  constexpr index kBlocks = kN / kBlock;
  V v[kN];
#pragma GCC unroll 16
  for (index g = 0; g < kBlocks; ++g) {
    const T* const rows = from + g * kBlock * from_stride;
    const auto row = [&](index i) { return change(hn::LoadU(d, rows + i * from_stride)); };
    if constexpr (kBlock == 4) {
      const auto a = row(0), b = row(1), c = row(2), e = row(3);
      const auto ac0 = hn::InterleaveLower(d, a, c), ac1 = hn::InterleaveUpper(d, a, c);
      const auto be0 = hn::InterleaveLower(d, b, e), be1 = hn::InterleaveUpper(d, b, e);
      v[g * 4 + 0] = hn::InterleaveLower(d, ac0, be0);
      v[g * 4 + 1] = hn::InterleaveUpper(d, ac0, be0);
      v[g * 4 + 2] = hn::InterleaveLower(d, ac1, be1);
      v[g * 4 + 3] = hn::InterleaveUpper(d, ac1, be1);
    } else {
      const auto a = row(0), b = row(1);
      v[g * 2 + 0] = hn::InterleaveLower(d, a, b);
      v[g * 2 + 1] = hn::InterleaveUpper(d, a, b);
    }
  }
  // v[g * kBlock + e] holds, in block b, rows g * kBlock ... of column b * kBlock + e.
  const auto store = [&](index c, V column) { hn::StoreU(column, d, to + c * to_stride); };
#pragma GCC unroll 4
  for (index e = 0; e < kBlock; ++e) {
    if constexpr (kBlocks == 1) {
      store(e, v[e]);
    } else if constexpr (kBlocks == 2) {
      store(e, hn::ConcatLowerLower(d, v[kBlock + e], v[e]));
      store(kBlock + e, hn::ConcatUpperUpper(d, v[kBlock + e], v[e]));
    } else {
      static_assert(kBlocks == 4);
      const auto a = v[e], b = v[kBlock + e], c = v[2 * kBlock + e], f = v[3 * kBlock + e];
      const auto even0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      const auto odd0 = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      const auto even1 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(f), c);
      const auto odd1 = hn::OddEvenBlocks(f, hn::SwapAdjacentBlocks(c));
      store(e, hn::ConcatLowerLower(d, even1, even0));
      store(kBlock + e, hn::ConcatLowerLower(d, odd1, odd0));
      store(2 * kBlock + e, hn::ConcatUpperUpper(d, even1, even0));
      store(3 * kBlock + e, hn::ConcatUpperUpper(d, odd1, odd0));
    }
  }
#endif
}

/// Multiplies a vector, or a value.
template <class T>
struct Times {
  T factor;
  template <class V>
  HWY_INLINE V operator()(V v) const {
    return hn::Mul(v, hn::Set(hn::DFromV<V>(), factor));
  }
  T operator()(T x) const { return factor * x; }
};

/// Multiplies the lanes of a vector, each by its own factor.
template <class T>
struct TimesLanes {
  Vector<T> factor;
  HWY_INLINE Vector<T> operator()(Vector<T> v) const { return hn::Mul(v, factor); }
};

/// lanes[c][r] = change(rows[r][c]) for r < count; lanes beyond count, up to `stride` (a multiple
/// of kLanes), become 0.
template <class T, class Change = std::identity>
void RowsToLanes(Rows<const T> rows, index count, T* lanes, index stride, Change change = {}) {
  constexpr index kN = kLanes<T>, kHalf = kN / 2;
  const index whole = rows.columns / kN * kN;
  for (index r0 = 0; r0 < stride; r0 += kN) {
    const index here = std::clamp<index>(count - r0, 0, kN);
    for (index c0 = 0; c0 < whole; c0 += kN) {
      T* const to = lanes + c0 * stride + r0;
      if (here == kN) {
        TransposeSquare<T, kN>(rows[r0] + c0, rows.stride, to, stride, change);
      } else {
        HWY_ALIGN T square[kN * kN] = {};
        for (index i = 0; i < here; ++i) std::copy_n(rows[r0 + i] + c0, kN, square + i * kN);
        TransposeSquare<T, kN>(square, kN, to, stride, change);
      }
    }
    index c = whole;
    if constexpr (kN == 16) {  // long vectors, of which half a square is worth it
      if (here == kN && c + kHalf <= rows.columns) {
        for (index r = r0; r < r0 + kN; r += kHalf) {
          T* const to = lanes + c * stride + r;
          TransposeSquare<T, kHalf>(rows[r] + c, rows.stride, to, stride, change);
        }
        c += kHalf;
      }
    }
    for (; c < rows.columns; ++c) {
      for (index i = 0; i < kN; ++i) {
        lanes[c * stride + r0 + i] = i < here ? change(rows[r0 + i][c]) : T{0};
      }
    }
  }
}

/// rows[r][c] = lanes[c][r] for r < count, multiplied by times[r] if `times` (of `stride` values)
/// is not null.
template <class T>
void LanesToRows(const T* lanes, index stride, index count, Rows<T> rows,
                 const T* times = nullptr) {
  constexpr index kN = kLanes<T>;
  const index whole = rows.columns / kN * kN;
  for (index r0 = 0; r0 < count; r0 += kN) {
    const index here = std::min(kN, count - r0);
    const auto turn = [&](const T* from, T* to, index to_stride) {
      if (times == nullptr) return TransposeSquare(from, stride, to, to_stride);
      const TimesLanes<T> by{hn::LoadU(Tag<T>(), times + r0)};
      TransposeSquare<T, kN>(from, stride, to, to_stride, by);
    };
    for (index c0 = 0; c0 < whole; c0 += kN) {
      const T* const from = lanes + c0 * stride + r0;
      if (here == kN) {
        turn(from, rows[r0] + c0, rows.stride);
      } else {
        HWY_ALIGN T square[kN * kN];
        turn(from, square, kN);
        for (index i = 0; i < here; ++i) std::copy_n(square + i * kN, kN, rows[r0 + i] + c0);
      }
    }
    for (index c = whole; c < rows.columns; ++c) {
      for (index i = 0; i < here; ++i) {
        const T value = lanes[c * stride + r0 + i];
        rows[r0 + i][c] = times == nullptr ? value : value * times[r0 + i];
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_TRANSPOSE_INL_H_
