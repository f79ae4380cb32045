// SPDX-License-Identifier: Apache-2.0
// What forward and backward tiles have in common, for one instruction set.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/query_tiles.h"
#include "fovea/base/memory.h"
#include "fovea/simd/prefetch.h"

#if defined(FOVEA_ATTENTION_FUSED_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_TILE_INL_H_
#undef FOVEA_ATTENTION_FUSED_TILE_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_TILE_INL_H_
#endif

#include "fovea/simd/philox-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// The comparison of 16 random bits of each of 16 scores with the threshold of dropout.
struct SixteenBits {
  std::uint64_t kept;  // bit l: the bits of words[l] from `shift` on are >= the threshold
  bool tie;            // whether any of them equals the threshold
};
HWY_INLINE SixteenBits CompareBits(const std::uint32_t* words, int shift, std::uint32_t threshold) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto limit = hn::Set(di, static_cast<std::int32_t>(threshold));
  SixteenBits result{0, false};
  for (std::size_t l = 0; l < 16; l += hn::Lanes(d)) {
    const auto half = hn::BitCast(
        di, hn::And(hn::ShiftRightSame(hn::Load(d, words + l), shift), hn::Set(d, 0xFFFFu)));
    HWY_ALIGN std::uint8_t mask[8] = {};
    hn::StoreMaskBits(di, hn::Not(hn::Lt(half, limit)), mask);
    result.kept |= (std::uint64_t{mask[0]} | std::uint64_t{mask[1]} << 8) << l;
    result.tie |= !hn::AllFalse(di, hn::Eq(half, limit));
  }
  return result;
}

/// Which scores of a rectangle dropout keeps: bit r of word c is query query + r, key key + c, for
/// r < 64 and c < keys.
inline void DropoutBits(const DropoutStream& stream, const DropoutRule& rule, index query,
                        index key, index keys, std::uint64_t* bits) {
  HWY_ALIGN std::uint32_t words[64];
  for (index block = key / 8; block * 8 < key + keys; ++block) {
    const index first = block * 8 - key;
    for (index c = 0; c < 8; ++c) {
      if (first + c >= 0 && first + c < keys) bits[first + c] = 0;
    }
    for (index r0 = 0; r0 < 64; r0 += 16) {
      Philox64(static_cast<std::uint32_t>(query + r0), static_cast<std::uint32_t>(block),
               stream.counter[0], stream.counter[1], {stream.key[0], stream.key[1]}, words);
      for (index c = 0; c < 8; ++c) {
        if (first + c < 0 || first + c >= keys) continue;
        const int shift = static_cast<int>(c % 2 * 16);
        auto [kept, tie] = CompareBits(words + c / 2 * 16, shift, rule.threshold);
        // One score in 65536: 32 more bits are compared with the rest of the probability.
        for (index r = 0; tie && rule.rest > 0 && r < 16; ++r) {
          const bool drop = drops(rule, stream, query + r0 + r, block * 8 + c);
          kept &= ~(std::uint64_t{drop} << r);
        }
        bits[first + c] |= kept << r0;
      }
    }
  }
}

/// Whether a row holds a NaN or an infinity.
template <class T>
HWY_INLINE bool IsPoisoned(const T* row, index n) {
  // x - x is 0 for finite x and NaN otherwise; sums of zeros are 0.
  const T sum = SumOf<T>(n, [row](auto lanes, index i) {
    const auto x = lanes.Load(row + i);
    return hn::Sub(x, x);
  });
  return !(sum == T{0});
}

template <class T>
bool AnyPoisoned(Rows<const T> rows) {
  for (index r = 0; r < rows.rows; ++r) {
    if (IsPoisoned(rows[r], rows.columns)) return true;
  }
  return false;
}

/// A copy of the rows in which those with a NaN or an infinity are 0.
template <class T>
Rows<const T> WithoutPoison(Rows<const T> rows, Scratch& scratch) {
  const Rows<T> clean(scratch.allocate<T>(rows.rows * rows.columns), rows.rows, rows.columns);
  for (index r = 0; r < rows.rows; ++r) {
    if (IsPoisoned(rows[r], rows.columns)) {
      std::fill_n(clean[r], rows.columns, T{0});
    } else {
      std::copy_n(rows[r], rows.columns, clean[r]);
    }
  }
  return clean;
}

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

/// Keys and values of one head, from key `first` on.
template <class T>
struct HeadKeys {
  index first;
  Rows<const T> k, v;
};

/// The keys and values that the mask can keep for some query of the run.
template <class T>
HeadKeys<T> KeysOfRun(const KernelCall<T>& call, const QueryRun& run) {
  const Sequence& sequence = run.sequence;
  const std::pair<index, index> range = key_range(call.attention.mask, run);
  const index group = group_of(run.head, call.in.q.heads, call.in.k.heads);
  const auto rows = [&](const View<const T>& view) {
    return Rows<const T>(view.row(sequence.batch, sequence.key_row + range.first, group),
                         std::max<index>(0, range.second - range.first), view.width,
                         view.length_stride);
  };
  return {range.first, rows(call.in.k), rows(call.in.v)};
}

/// Prefetches what a run of tiles reads first.
template <class T>
void ExpectRun(const KernelCall<T>& call, const QueryRun& run, Prefetch& ahead) {
  const View<const T>& q = call.in.q;
  const HeadKeys<T> keys = KeysOfRun(call, run);
  const index first = run.sequence.query_row + run.query_begin;
  ahead.add(keys.k);
  ahead.add(Rows<const T>(q.row(run.sequence.batch, first, run.head),
                          run.query_end - run.query_begin, q.width, q.length_stride));
  ahead.add(keys.v);
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

/// Transposes 64 x 64 bits: bit c of word r changes places with bit r of word c (Hacker's Delight
/// 7-3).
inline void TransposeBits(std::uint64_t* words) {
  std::uint64_t mask = 0x00000000FFFFFFFFu;
  for (unsigned width = 32; width != 0; width >>= 1, mask ^= mask << width) {
    for (unsigned r = 0; r < 64; r = ((r | width) + 1) & ~width) {
      const std::uint64_t change = (words[r] >> width ^ words[r | width]) & mask;
      words[r] ^= change << width;
      words[r | width] ^= change;
    }
  }
}

/// Lanes whose bit is set, from bit 0 on.
template <class T>
HWY_INLINE hn::Mask<Tag<T>> LaneMask(std::uint64_t bits) {
  HWY_ALIGN std::uint8_t bytes[8];
  std::memcpy(bytes, &bits, sizeof bits);
  return hn::LoadMaskBits(Tag<T>(), bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_TILE_INL_H_
