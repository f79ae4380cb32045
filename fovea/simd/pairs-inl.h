// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 with float32 sums, for the processors that have vdpbf16ps. An operand of
// such a product is a pair: two neighbours along the sum, the first in the lower half of a 32-bit
// lane. Rows of [depth, lanes] become [depth / 2, lanes] of pairs.
//
// The instructions are written in assembly: a target of its own for them, which Highway 1.0 does
// not have, would compile every kernel once more. Only call what is here where
// has_bfloat16_products().
//
// Denormal bfloat16s count as 0, and denormal sums become 0, as these instructions have it.
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "fovea/base/memory.h"
#include "fovea/base/precision.h"
#include "fovea/base/view.h"

#if defined(FOVEA_SIMD_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_PAIRS_INL_H_
#undef FOVEA_SIMD_PAIRS_INL_H_
#else
#define FOVEA_SIMD_PAIRS_INL_H_
#endif

#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

/// Whether the current target has these products; then they are compiled.
#undef FOVEA_PAIRS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define FOVEA_PAIRS 1
#else
#define FOVEA_PAIRS 0
#endif

#if FOVEA_PAIRS
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

using PairTag = hn::ScalableTag<BFloat16Pair>;
using Pairs = hn::Vec<PairTag>;

/// Rows of a tile register of AMX, and the pairs of a row of it (amx-inl.h).
inline constexpr index kTileSide = 16;

/// sum + a.first * b.first + a.second * b.second in each lane.
HWY_INLINE Vector<float> AddProduct(Pairs a, Pairs b, Vector<float> sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(b.raw), "v"(a.raw));
  return sum;
}

/// The 32 floats of two vectors, rounded to nearest even, one after another.
HWY_INLINE Pairs RoundInOrder(Vector<float> low, Vector<float> high) {
  Pairs halves;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves.raw) : "v"(low.raw), "v"(high.raw));
  return halves;
}

/// The first `count` values, rounded.
HWY_INLINE void StoreRounded(Vector<float> values, index count, BFloat16* to) {
  const auto rounded = _mm512_castsi512_si256(RoundInOrder(values, values).raw);
  if (count == kLanes<float>) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), rounded);
  } else {
    const auto mask = static_cast<__mmask16>((1u << count) - 1);
    _mm256_mask_storeu_epi16(to, mask, rounded);
  }
}

/// In each lane the pair of both values, rounded.
HWY_INLINE Pairs RoundToPairs(Vector<float> first, Vector<float> second) {
  alignas(64) static constexpr std::uint16_t kAlternate[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return Pairs{
      _mm512_permutexvar_epi16(_mm512_load_si512(kAlternate), RoundInOrder(first, second).raw)};
}

/// Each t becomes 2^t, for t up to 60, and 1 for 0, within 3.1 ulp. It has a step less than
/// Exp2OfWeight<5>: the fraction is counted from the integer below, which is what scalef takes t
/// for. All vectors take a step before the next one: one after another, each step would wait for
/// the one before it.
template <int kVectors>
HWY_INLINE void Exp2FromBelow(Vector<float> (&t)[kVectors]) {
  constexpr Tag<float> d;
  Vector<float> fraction[kVectors], power[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    fraction[v] = Vector<float>{_mm512_reduce_ps(t[v].raw, _MM_FROUND_TO_NEG_INF)};
    power[v] = hn::Set(d, 0.00186713057f);
  }
#pragma GCC unroll 5
  for (const float c : {0.00901702925f, 0.0557999139f, 0.24016445f, 0.693151312f, 1.0f}) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      power[v] = hn::MulAdd(power[v], fraction[v], hn::Set(d, c));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    t[v] = Vector<float>{_mm512_scalef_ps(power[v].raw, t[v].raw)};
  }
}
HWY_INLINE Vector<float> Exp2FromBelow(Vector<float> t) {
  Vector<float> one[1] = {t};
  Exp2FromBelow(one);
  return one[0];
}

/// The first and the second values of pairs, as floats.
HWY_INLINE Vector<float> FirstOf(Pairs p) {
  return hn::BitCast(Tag<float>(), hn::ShiftLeft<16>(p));
}
HWY_INLINE Vector<float> SecondOf(Pairs p) {
  return hn::BitCast(Tag<float>(), hn::And(p, hn::Set(PairTag(), 0xffff0000u)));
}

/// 16 values, or the first `count` of them and zeros, each in the lower half of a lane.
HWY_INLINE Pairs LoadHalves(const BFloat16* p) {
  return Pairs{_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
HWY_INLINE Pairs LoadHalves(const BFloat16* p, index count) {
  BFloat16 values[16] = {};
  std::memcpy(values, p, static_cast<std::size_t>(count) * sizeof(BFloat16));
  return LoadHalves(values);
}

/// Calls f(halves, i) for i = 0, 16, 32 ... below n, the last time with zeros after the n-th value.
template <class F>
HWY_INLINE void ForEachHalves(const BFloat16* p, index n, F&& f) {
  index i = 0;
  for (; i + 16 <= n; i += 16) f(LoadHalves(p + i), i);
  if (i < n) f(LoadHalves(p + i, n - i), i);
}

/// The rows as floats: [rows, columns], in rows of whole vectors whose rest is 0.
inline void WidenRows(Rows<const BFloat16> rows, Rows<float> to) {
  for (index r = 0; r < rows.rows; ++r) {
    float* const row = to[r];
    ForEachHalves(rows[r], rows.columns, [&](Pairs halves, index i) {
      hn::StoreU(FirstOf(halves), Tag<float>(), row + i);
    });
  }
}

/// factor * rows, rounded. `rows` holds whole vectors.
inline void RoundRows(Rows<const float> rows, float factor, Rows<BFloat16> to) {
  constexpr Tag<float> d;
  constexpr index kN = kLanes<float>;
  const auto by = hn::Set(d, factor);
  for (index r = 0; r < to.rows; ++r) {
    const float* const row = rows[r];
    BFloat16* const rounded = to[r];
    const auto load = [&](index i) { return hn::Mul(hn::LoadU(d, row + i), by); };
    index c = 0;
    for (; c + 2 * kN <= to.columns; c += 2 * kN) {
      _mm512_storeu_si512(rounded + c, RoundInOrder(load(c), load(c + kN)).raw);
    }
    for (; c < to.columns; c += kN) {
      const index left = std::min(kN, to.columns - c);
      const auto mask = static_cast<__mmask32>((std::uint32_t{1} << left) - 1);
      _mm512_mask_storeu_epi16(rounded + c, mask, RoundInOrder(load(c), hn::Zero(d)).raw);
    }
  }
}

/// to[j][c] = the pair of rows[2 j][c] and rows[2 j + 1][c], as far as there are rows and columns,
/// and else zeros: [(rows + 1) / 2, whole vectors].
inline void PairRows(Rows<const BFloat16> rows, Rows<BFloat16Pair> to) {
  constexpr PairTag d;
  for (index r = 0; r < rows.rows; r += 2) {
    BFloat16Pair* const pairs = to[r / 2];
    if (r + 1 == rows.rows) {
      ForEachHalves(rows[r], rows.columns,
                    [&](Pairs first, index c) { hn::StoreU(first, d, pairs + c); });
      continue;
    }
    const BFloat16* const second = rows[r + 1];
    ForEachHalves(rows[r], rows.columns, [&](Pairs first, index c) {
      const index left = rows.columns - c;
      const auto above = left < 16 ? LoadHalves(second + c, left) : LoadHalves(second + c);
      hn::StoreU(hn::Or(first, hn::ShiftLeft<16>(above)), d, pairs + c);
    });
  }
}

/// Makes pairs of rows of floats, which are rounded; all columns are whole vectors.
inline void PairRows(Rows<const float> rows, Rows<BFloat16Pair> to) {
  constexpr Tag<float> d;
  for (index r = 0; r < rows.rows; r += 2) {
    const bool single = r + 1 == rows.rows;
    for (index c = 0; c < rows.columns; c += kLanes<float>) {
      const auto second = single ? hn::Zero(d) : hn::LoadU(d, rows[r + 1] + c);
      hn::StoreU(RoundToPairs(hn::LoadU(d, rows[r] + c), second), PairTag(), to[r / 2] + c);
    }
  }
}

/// Clears the values whose bit is 0: bit c of bits[2 r] is that of the first value of pairs[r][c],
/// bit c of bits[2 r + 1] that of the second. At most 64 columns, all whole vectors.
inline void KeepInPairs(Rows<BFloat16Pair> pairs, const std::uint64_t* bits) {
  constexpr PairTag d;
  const auto second = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (index r = 0; r < pairs.rows; ++r) {
    for (index c = 0; c < pairs.columns; c += kLanes<float>) {
      const auto keeps = [&](index row) { return static_cast<__mmask16>(bits[row] >> c); };
      const auto of_first = _mm512_maskz_set1_epi32(keeps(2 * r), 0xffff);
      const Pairs kept{_mm512_mask_or_epi32(of_first, keeps(2 * r + 1), of_first, second)};
      hn::Store(hn::And(hn::Load(d, pairs[r] + c), kept), d, pairs[r] + c);
    }
  }
}

/// The rows rounded, as pairs along them; all columns are pairs of whole vectors, or one vector
/// more.
inline void RoundInOrder(Rows<const float> rows, Rows<BFloat16Pair> to) {
  constexpr index kN = kLanes<float>;
  constexpr Tag<float> d;
  for (index r = 0; r < rows.rows; ++r) {
    index c = 0;
    for (; c + 2 * kN <= rows.columns; c += 2 * kN) {
      const auto pairs = RoundInOrder(hn::LoadU(d, rows[r] + c), hn::LoadU(d, rows[r] + c + kN));
      hn::StoreU(pairs, PairTag(), to[r] + c / 2);
    }
    if (c == rows.columns) continue;
    const auto pairs = RoundInOrder(hn::LoadU(d, rows[r] + c), hn::Zero(d));
    const hn::Half<PairTag> half;
    hn::StoreU(hn::LowerHalf(half, pairs), half, to[r] + c / 2);
  }
}

/// The rows, whose values are pairs along them: [rows, (columns + 1) / 2], the last with a zero if
/// columns are odd.
inline void CopyAsPairs(Rows<const BFloat16> rows, Rows<BFloat16Pair> to) {
  for (index r = 0; r < rows.rows; ++r) {
    to[r][(rows.columns - 1) / 2] = 0;
    std::memcpy(to[r], rows[r], static_cast<std::size_t>(rows.columns) * sizeof(BFloat16));
  }
}

/// lanes[c][r] = the pair of rows[r][2 c] and rows[r][2 c + 1], for [(columns + 1) / 2][stride];
/// lanes beyond the rows are 0.
inline void PairsToLanes(Rows<const BFloat16> rows, BFloat16Pair* lanes, index stride) {
  Scratch scratch;
  const index pairs = (rows.columns + 1) / 2;
  const Rows<BFloat16Pair> copy(scratch.allocate<BFloat16Pair>(rows.rows * pairs), rows.rows,
                                pairs);
  CopyAsPairs(rows, copy);
  RowsToLanes<BFloat16Pair>(copy, rows.rows, lanes, stride);
}

/// sum + the products of `count` pairs, a step of them kLanes apart, as vdpbf16ps adds them.
HWY_INLINE Vector<float> AddPairs(const BFloat16Pair* a, const BFloat16Pair* b, index count,
                                  Vector<float> sum) {
  for (index c = 0; c < count; ++c, a += kLanes<float>, b += kLanes<float>) {
    sum = AddProduct(hn::LoadU(PairTag(), a), hn::LoadU(PairTag(), b), sum);
  }
  return sum;
}

/// AddPairs in the order in which tile registers add; `count` is at most kTileSide.
HWY_INLINE Vector<float> AddPairsAsTiles(const BFloat16Pair* a, const BFloat16Pair* b, index count,
                                         Vector<float> sum) {
  auto first = hn::Zero(Tag<float>()), second = first;
  for (index c = 0; c < count; ++c, a += kLanes<float>, b += kLanes<float>) {
    const Pairs of_a = hn::LoadU(PairTag(), a), of_b = hn::LoadU(PairTag(), b);
    first = hn::MulAdd(FirstOf(of_a), FirstOf(of_b), first);
    second = hn::MulAdd(SecondOf(of_a), SecondOf(of_b), second);
  }
  return hn::Add(sum, hn::Add(first, second));
}

/// dots[r] = a[r] . b[r], summed as a product sums: 16 rows at a time, one in each lane. So the
/// gradient of a score whose weight is 1 is exactly 0.
inline void RowDots(Rows<const BFloat16> a, Rows<const BFloat16> b, float* dots) {
  constexpr index kN = kLanes<float>;
  Scratch scratch;
  const index pairs = (a.columns + 1) / 2;
  const bool on_tiles = has_tiles();
  BFloat16Pair* const a_lanes = scratch.allocate<BFloat16Pair>(pairs * kN);
  BFloat16Pair* const b_lanes = scratch.allocate<BFloat16Pair>(pairs * kN);
  for (index r = 0; r < a.rows; r += kN) {
    const index count = std::min(kN, a.rows - r);
    PairsToLanes(a.slice(r, r + count), a_lanes, kN);
    PairsToLanes(b.slice(r, r + count), b_lanes, kN);
    auto sum = hn::Zero(Tag<float>());
    for (index c = 0; c < pairs; c += kTileSide) {
      const index here = std::min(kTileSide, pairs - c);
      const BFloat16Pair *const of_a = a_lanes + c * kN, *const of_b = b_lanes + c * kN;
      sum = on_tiles ? AddPairsAsTiles(of_a, of_b, here, sum) : AddPairs(of_a, of_b, here, sum);
    }
    ForEachLane<float>(count, [&](auto lanes, index i) { lanes.Store(sum, dots + r + i); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();
#endif  // FOVEA_PAIRS

#endif  // FOVEA_SIMD_PAIRS_INL_H_
