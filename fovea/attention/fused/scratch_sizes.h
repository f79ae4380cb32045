// SPDX-License-Identifier: Apache-2.0
// How much memory tiles take: used by the allocation and by the plan.
#pragma once

#include <algorithm>

#include "fovea/attention/fused/kernel_call.h"

namespace fovea::detail {

/// Number of tiles that run together: each block of rows is used by one of them after another. Rows
/// that fit into a core's L2 cache are read by one tile at a time. Longer ones would come from L3
/// or memory for each tile; with tiles together they are loaded once for all of them, while the
/// tiles' own buffers move between the caches. At 4096 tokens, 8 heads and D 128, forward and
/// backward take .68 and .88 of the time. A function of sizes and of the instruction set.
inline constexpr index kMostTilesTogether = 8;
inline constexpr index kSecondCacheBytes = 1 << 20;
inline index tiles_together(index bytes_read, index bytes_of_tile,
                            index cache = kSecondCacheBytes) {
  constexpr index kBuffers = 640 << 10;
  if (bytes_read <= cache) return 1;
  return std::clamp<index>(kBuffers / std::max<index>(bytes_of_tile, 1), 1, kMostTilesTogether);
}

inline index round_up(index n, index to) { return (n + to - 1) / to * to; }

/// The widths of a call, exact and rounded up to whole vectors.
struct Widths {
  index D, Dv, Dp, Dvp;
};

// The sizes below count values of Wide<T>. A pair of bfloat16, where products read pairs, takes the
// four bytes of a float and counts as one.

/// The size of each buffer of a forward tile whose rows have `stride` values.
template <class T>
struct ForwardSizes {
  index qt, o;
  index lane;        ///< of largest, m, l and alpha each
  index wide_q = 0;  ///< the rows of q for biases, if products read pairs
  index s;           ///< tiles that run together share s, p and wide_k
  index p = 0, wide_k = 0;
  index rows = 0;  ///< of q as pairs while a tile begins, of o before they are rounded

  ForwardSizes(const Widths& widths, index stride, bool needs_rows)
      : qt(operands_of<T>(widths.D) * stride),
        o(widths.Dv * stride),
        lane(stride),
        s(kRowBlock * stride) {
    if (!kReadsPairs<T>) return;
    p = operands_of<T>(kRowBlock) * stride;
    wide_q = needs_rows ? stride * widths.Dp : 0;
    wide_k = needs_rows ? kRowBlock * widths.Dp : 0;
    rows = stride * std::max(operands_of<T>(widths.D), widths.Dvp);
  }
  index own() const { return qt + o + 4 * lane + wide_q; }
  index shared() const { return s + p + wide_k + rows; }
};

/// Keys that the forward of a few queries transposes at a time.
inline constexpr index kTurned = 64;

/// The size of each buffer of the forward of a few queries. `lanes`: queries in whole vectors.
struct FewSizes {
  index q, kt, s, o;
  index lane;   ///< of largest, m, l and alpha each
  index v = 0;  ///< a block of values in whole vectors, where rows of V are not

  FewSizes(const Widths& widths, index queries, index lanes)
      : q(queries * widths.Dp),
        kt(widths.D * kTurned),
        s(queries * kRowBlock),
        o(queries * widths.Dvp),
        lane(lanes),
        v(widths.Dv == widths.Dvp ? 0 : kRowBlock * widths.Dvp) {}
  index values() const { return q + kt + s + o + 4 * lane + v; }
};

/// The sizes of the copies of keys and values that KvBlocks makes.
struct KvSizes {
  index rows = 0;      ///< keys at a time; 0: all are read where they are
  index k = 0, v = 0;  ///< k is 0 where keys alone are
  index turned = 0;    ///< of the values as left operands, if products run on tile registers
  bool all = false;    ///< whether the rows of all keys are there at once

  index values() const { return k + v + turned; }
};

/// A copy of `rows` keys and values.
inline KvSizes copy_sizes(index rows, index D, index Dv) { return {rows, rows * D, rows * Dv}; }

/// The pairs of `keys` keys. As long as those of all stay in a core's cache, they are made once;
/// beyond that block by block. Turned values come on top. `in_place`: the rows of k are read where
/// they are.
inline KvSizes pair_sizes(index keys, const Widths& widths, bool in_place, bool on_tiles) {
  constexpr index kPair = sizeof(BFloat16Pair);
  const auto of_k = [&](index n) { return n * operands_of<BFloat16>(widths.D); };
  const auto of_v = [&](index n) { return operands_of<BFloat16>(n) * widths.Dvp; };
  const bool all = (of_k(keys) + of_v(keys)) * kPair <= kSecondCacheBytes;
  const index rows = all ? keys : std::min(keys, kRowBlock);
  // Turned values lie in blocks of their own, the first and the last of which may be parts.
  const index blocks = on_tiles ? (rows + 2 * (kRowBlock - 1)) / kRowBlock : 0;
  return {rows, in_place ? 0 : of_k(rows), of_v(rows),
          blocks * widths.Dv * operands_of<BFloat16>(kRowBlock), all};
}

/// How many bytes of keys and values a run of tiles reads.
template <class T>
index bytes_of_keys(index keys, index D, index Dv) {
  return keys * (D + Dv) * static_cast<index>(sizeof(T));
}

/// Query tiles of a run that sees `keys` keys, each with `observed` values of its observers. Where
/// a tile is several panels of lanes, they share a copy of each block (KvBlocks): with AVX2 and
/// 1024 tokens, eight take .88 of the time; with 128, whose rows are 64 KB, two take 1.03.
template <class T>
index query_tiles_together(index D, index Dv, index keys, index observed, index panel_lanes) {
  constexpr index kSize = sizeof(Wide<T>);
  const ForwardSizes<Wide<T>> sizes({D, Dv, D, Dv}, kLaneTile, false);
  const index cache = panel_lanes < kLaneTile ? kSecondCacheBytes / 8 : kSecondCacheBytes;
  return tiles_together(bytes_of_keys<T>(keys, D, Dv), (sizes.own() + observed) * kSize, cache);
}

/// The size of each buffer of a backward tile of `keys` keys, whose rows have `stride` values.
template <class T>
struct BackwardSizes {
  index kt, vt, k;
  index dk, dv;
  index wide_k = 0;  ///< the rows of k for parts, if products read pairs
  // Tiles that run together share the others.
  index s;  ///< of s and dp each
  index inputs;
  index pairs = 0;  ///< of p_down, ds_down and ds_along each
  index wide_q = 0, wide_d_o = 0;
  index rows = 0;  ///< of k or v as pairs, while a tile begins

  /// `kept_scores`: parts that read the scores; `needs_rows`: whether parts read rows.
  BackwardSizes(const Widths& widths, index keys, index stride, index kept_scores, bool needs_rows)
      : kt(operands_of<T>(widths.D) * stride),
        vt(operands_of<T>(widths.Dv) * stride),
        k(operands_of<T>(keys) * widths.Dp),
        dk(stride * widths.Dp),
        dv(stride * widths.Dvp),
        s(kRowBlock * stride),
        inputs(kept_scores * s) {
    if (!kReadsPairs<T>) return;
    pairs = operands_of<T>(s);
    rows = keys * operands_of<T>(std::max(widths.D, widths.Dv));
    if (!needs_rows) return;
    wide_k = keys * widths.Dp;
    wide_q = kRowBlock * widths.Dp;
    wide_d_o = kRowBlock * widths.Dvp;
  }
  index own() const { return kt + vt + k + dk + dv + wide_k; }
  index shared() const { return 2 * s + inputs + 3 * pairs + wide_q + wide_d_o + rows; }
};

/// Key tiles of a chunk that sees `queries` queries.
template <class T>
index key_tiles_together(const Widths& widths, index queries) {
  constexpr index kSize = sizeof(Wide<T>);
  const index q_dq_d_o = 2 * widths.Dp + widths.Dvp;
  const BackwardSizes<Wide<T>> sizes(widths, kLaneTile, kLaneTile, 0, false);
  return tiles_together(queries * q_dq_d_o * kSize, sizes.own() * kSize);
}

/// Scratch of the thread that calls, and of each other that works for it.
struct ThreadScratch {
  double caller = 0;
  double worker = 0;
};

}  // namespace fovea::detail
