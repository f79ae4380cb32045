// SPDX-License-Identifier: Apache-2.0
// The register-blocked tile product that attention and gemm use.
//
//   C[r][l]  =  start(r, l)  +  sum over k = 0, 1 ... depth-1 of  A(r, k) * B[k][l]
//
// A [rows, depth], B [depth, lanes], C [rows, lanes]; see Into for the start. `lanes` runs along
// memory in B and C and is cut into whole vectors, which are read and written up to `lanes`; A is
// read one value at a time (broadcast), wherever its strides say, so A may be a matrix, its
// transpose, or a strided part of either.
//
// `lanes` must be a multiple of kLanes<T>: pad tiles to it. rows, depth and lanes may be 0 (depth 0
// leaves the start). B and C need no alignment, but B is fastest in L1 or L2 with a small stride:
// 64 lanes of float, the panel of AVX-512, are read in one sweep when the stride is 64 too.
//
// Operands may be pairs of bfloat16 (pairs-inl.h): then depth counts pairs, and A and B hold them.
//
// Bits: each value of C is its start, then one fused multiply-add for each k, ascending (with SSE
// and scalar a multiplication and an addition; of pairs, one vdpbf16ps). So they depend neither on
// rows or lanes nor, except for kAddTimes, on how a sum over k is cut into several calls that add.
// On amx, pairs have another order, and a sum must be cut at a multiple of 16 of them (amx-inl.h).
//
// For attention with queries in lanes (a tile of 64 queries):
//   scores    s[key][query] = K row . qt         TileProduct<Into::kOverwrite, LaneMaximum::kTake>
//             {.a = K [keys, D], .b = qt [D, 64], .c = s [keys, 64], .maximum = running [64]}
//   output    o[d][query] = o * alpha + V^T p    TileProduct<Into::kScaleAndAdd>
//             {.a = Transposed(V [keys, Dv]), .b = p [keys, 64], .c = o [Dv, 64],
//              .per_lane = alpha [64]}
#include <type_traits>

#include "fovea/base/view.h"
#include "fovea/simd/prefetch.h"

#if defined(FOVEA_SIMD_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_PRODUCT_INL_H_
#undef FOVEA_SIMD_PRODUCT_INL_H_
#else
#define FOVEA_SIMD_PRODUCT_INL_H_
#endif

#include "fovea/simd/amx-inl.h"
#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/steps-inl.h"
#include "fovea/simd/tile_operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// sum + a * b.
template <class V>
HWY_INLINE V AddProduct(V a, V b, V sum) {
  return hn::MulAdd(a, b, sum);
}

/// The register block: 24 sums of AVX-512's 32 registers, 12 or 8 of the other sets' 16. A panel of
/// this many lanes is what the product works on at a time.
inline constexpr int kBlockRows = HWY_TARGET <= HWY_AVX2 ? 6 : 4;
inline constexpr int kBlockVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
template <class T>
inline constexpr index kPanelLanes = kBlockVectors* kLanes<T>;

/// The rows of a block of kVectors vectors. One vector has more of them: a step in k would
/// otherwise have too few sums to hide the latency.
template <int kVectors>
inline constexpr int kRowsOfBlock = kVectors == 1 && HWY_TARGET <= HWY_AVX3 ? 16 : kBlockRows;

/// Whether 8 rows at the end are two blocks of 4: after 6 rows, the 2 x 2 sums of the last two
/// would be too few to hide the latency. (Measured with AVX2; with AVX-512 it is the last panel of
/// a tile.)
template <int kVectors>
inline constexpr bool kSplitsEight = kRowsOfBlock<kVectors> == 6 && kVectors == 2;

/// A line is asked for every so many steps. About 16 blocks of rows read a panel of B before the
/// next is needed, so each asks for a sixteenth of it. A step of a panel is four lines with
/// AVX-512, at most one with other sets. For the lines of a queue the same numbers took the least
/// time.
inline constexpr index kStepsOfAsk = kBlockVectors == 4 ? 4 : 16;

/// kStepsOfAsk for the lines of a queue. With instruction sets older than AVX2 a block asks for one
/// line at its end: a loop with asks would make the code of each product half as long again.
inline constexpr index kStepsOfQueue = HWY_TARGET <= HWY_AVX2 ? kStepsOfAsk : 0;

/// Whether a block asks for the rows of C that the next one writes, if they are far: with AVX2 they
/// are about one cache line each, on pages of their own. With AVX-512 it gains nothing (Zen 5).
inline constexpr bool kAsksForC = kBlockVectors == 2;

// The start of a block: the initial value of one of its sums.
template <Into kInto, class T, class In>
HWY_INLINE Vector<T> Started([[maybe_unused]] const TileOperands<T, In>& t,
                             [[maybe_unused]] const T* c, [[maybe_unused]] index lane) {
  const Tag<T> d;
  if constexpr (kInto == Into::kStartAt) return hn::LoadU(d, t.per_lane + lane);
  if constexpr (kInto == Into::kAdd) return hn::LoadU(d, c);
  if constexpr (kInto == Into::kScaleAndAdd) {
    return hn::Mul(hn::LoadU(d, c), hn::LoadU(d, t.per_lane + lane));
  }
  return hn::Zero(d);
}

// The end of a block: one of its sums as it is stored.
template <Into kInto, class T>
HWY_INLINE Vector<T> Finished(Vector<T> sum, [[maybe_unused]] Vector<T> factor,
                              [[maybe_unused]] const T* c) {
  if constexpr (kInto == Into::kOverwriteTimes) return hn::Mul(factor, sum);
  if constexpr (kInto == Into::kAddTimes) return hn::MulAdd(factor, sum, hn::LoadU(Tag<T>(), c));
  return sum;
}

/// The end of a block: its sums go to C. (As a function it took 1.01 to 1.03 of the time.)
struct StoreSums {};

/// A product with another end, a function: end(sum, row, lane) gets sum[kRows][kVectors] of the
/// rows from `row` on and the lanes from `lane` on. (An argument for it, which StoreSums would not
/// use, makes GCC compile the product anew in each file.)
template <class T, class In, class End>
struct ProductWithEnd : TileOperands<T, In> {
  End end;
};
template <class End, class T, class In>
HWY_INLINE const End& EndOf(const TileOperands<T, In>& t) {
  return static_cast<const ProductWithEnd<T, In, End>&>(t).end;
}

// The loop over the steps of a block, with the lines that it asks for. Without a queue, or with an
// empty one, it asks for the line of `t` itself, which is in the first cache: a loop without asks
// would be as much code again.
template <Ask kAsk, class T, class In, class Step>
HWY_INLINE void ForEachStepOf(const TileOperands<T, In>& t, Step&& step) {
  if constexpr (kAsk == Ask::kQueue) {
    auto next = t.prefetch != nullptr ? t.prefetch->column(&t) : Prefetch::column_of(&t);
    const auto ask = [&]() __attribute__((always_inline)) { next.ask(); };
    ForEachStep<kStepsOfQueue>(t.b.rows, ask, step);
    if (t.prefetch != nullptr) t.prefetch->continue_at(next);
  } else {
    LinesAhead::Row next = t.ahead->row();
    const auto ask = [&]() __attribute__((always_inline)) {
      if constexpr (kManyRegisters) t.ahead->ask(next);
      if constexpr (!kManyRegisters) LinesAhead::ask_in_row(next);
    };
    ForEachStep<kStepsOfAsk>(t.b.rows, ask, step);
    t.ahead->continue_at(next);
  }
}

// One block: kRows x kVectors sums stay in registers through the whole loop over k. Per k it loads
// kVectors vectors of B and kRows values of A for kRows * kVectors multiply-adds, so that with 6 x
// 4 the loads are well below what the machine can do beside its multiply-adds. The arrays of
// vectors are registers once the loops over them are unrolled.
template <Into kInto, LaneMaximum kMaximum, Ask kAsk, class End, int kRows, int kVectors, class T,
          class In>
HWY_INLINE void ProductBlock(const TileOperands<T, In>& t, index row, index lane) {
  const Tag<T> d;
  constexpr index kN = kLanes<T>;
  constexpr hn::ScalableTag<In> of_operand;
  const In* HWY_RESTRICT a = t.a.data + row * t.a.row;
  const In* HWY_RESTRICT b = t.b.data + lane;
  T* HWY_RESTRICT c = t.c[row] + lane;
  const index a_row = t.a.row, a_column = t.a.column, b_row = t.b.stride, c_row = t.c.stride;
  Vector<T> sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = Started<kInto>(t, c + r * c_row + v * kN, lane + v * kN);
    }
  }
  if (kAsksForC && t.c_is_far && row + 2 * kRows <= t.c.rows) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) detail::prefetch_line_to_write(c + (kRows + r) * c_row);
  }
  const auto step = [&](index /*k*/) __attribute__((always_inline)) {
    Vector<In> row_of_b[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) row_of_b[v] = InRegister(hn::LoadU(of_operand, b + v * kN));
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto value = hn::Set(of_operand, OperandAt(a + r * a_row));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = AddProduct(value, row_of_b[v], sum[r][v]);
    }
    a += a_column;
    b += b_row;
  };
  ForEachStepOf<kAsk>(t, step);
  if constexpr (!std::is_same_v<End, StoreSums>) return EndOf<End>(t)(sum, row, lane);
  const auto factor = hn::Set(d, t.factor);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    [[maybe_unused]] auto largest = Finished<kInto, T>(sum[0][v], factor, c + v * kN);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      T* const to = c + r * c_row + v * kN;
      const auto value = Finished<kInto, T>(sum[r][v], factor, to);
      hn::StoreU(value, d, to);
      if constexpr (kMaximum == LaneMaximum::kTake) largest = hn::Max(largest, value);
    }
    if constexpr (kMaximum == LaneMaximum::kTake) {
      T* const maximum = t.maximum + lane + v * kN;
      hn::StoreU(hn::Max(hn::LoadU(d, maximum), largest), d, maximum);
    }
  }
}

/// All rows of one panel of kVectors vectors that starts at `lane`.
template <Into kInto, LaneMaximum kMaximum, Ask kAsk, class End, int kVectors, class T, class In>
HWY_NOINLINE void ProductPanel(const TileOperands<T, In>& t, index lane) {
  constexpr int kRows = kRowsOfBlock<kVectors>;
  index row = 0;
  const index rows = t.c.rows;
  for (; row + kRows <= rows && !(kSplitsEight<kVectors> && rows - row == 8); row += kRows) {
    ProductBlock<kInto, kMaximum, kAsk, End, kRows, kVectors>(t, row, lane);
  }
  if constexpr (kRows > 8) {
    if (row + 8 <= rows) {
      ProductBlock<kInto, kMaximum, kAsk, End, 8, kVectors>(t, row, lane);
      row += 8;
    }
  }
  if constexpr (kRows > 4) {
    for (; row + 4 <= rows; row += 4) {
      ProductBlock<kInto, kMaximum, kAsk, End, 4, kVectors>(t, row, lane);
    }
  }
  if (row + 2 <= rows) {
    ProductBlock<kInto, kMaximum, kAsk, End, 2, kVectors>(t, row, lane);
    row += 2;
  }
  if (row < rows) ProductBlock<kInto, kMaximum, kAsk, End, 1, kVectors>(t, row, lane);
}

/// The product by vectors alone; unless End is StoreSums, t is a ProductWithEnd.
template <Into kInto, LaneMaximum kMaximum, Ask kAsk, class End, class T, class In>
HWY_INLINE void VectorProduct(const TileOperands<T, In>& t) {
  index lane = 0;
  for (; lane + kPanelLanes<T> <= t.c.columns; lane += kPanelLanes<T>) {
    ProductPanel<kInto, kMaximum, kAsk, End, kBlockVectors>(t, lane);
  }
  for (; lane + 2 * kLanes<T> <= t.c.columns; lane += 2 * kLanes<T>) {
    ProductPanel<kInto, kMaximum, kAsk, End, 2>(t, lane);
  }
  for (; lane + kLanes<T> <= t.c.columns; lane += kLanes<T>) {
    ProductPanel<kInto, kMaximum, kAsk, End, 1>(t, lane);
  }
}

template <Into kInto, LaneMaximum kMaximum = LaneMaximum::kNone, Ask kAsk = Ask::kQueue, class T,
          class In>
HWY_INLINE void TileProduct(const TileOperands<T, In>& t) {
#if FOVEA_PAIRS
  if constexpr (std::is_same_v<In, BFloat16Pair>) {
    using OnTiles = TilesProduct<PairTiles, kInto, kMaximum>;
    if (has_tiles() && OnTiles::fits(t)) return OnTiles(t).run();
  }
#endif
  VectorProduct<kInto, kMaximum, kAsk, StoreSums>(t);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_PRODUCT_INL_H_
