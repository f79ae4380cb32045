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

/// Values of each buffer of a forward tile whose rows have `stride` values.
struct ForwardSizes {
  index kv_block;  ///< a copy of a block of keys and values, where KvBlocks makes one
  index qt, s, o;
  index lane;  ///< of largest, m, l and alpha each

  ForwardSizes(index D, index Dv, index stride)
      : kv_block(kRowBlock * (D + Dv)),
        qt(D * stride),
        s(kRowBlock * stride),
        o(Dv * stride),
        lane(stride) {}
  index own() const { return qt + o + 4 * lane; }  ///< tiles that run together share s
};

inline index round_up(index n, index to) { return (n + to - 1) / to * to; }

/// Pairs of the keys and values of a run that sees `keys` keys (KvBlocks). As long as those of all
/// keys stay in a core's cache, they are made once; beyond that block by block.
struct PairBlockSizes {
  index rows;  ///< keys at a time
  index k, v;

  /// `in_place`: the rows of k are read where they are. `lanes`: of a vector of floats.
  PairBlockSizes(index keys, index D, index Dv, bool in_place, index lanes) {
    constexpr index kPair = sizeof(BFloat16Pair);
    const auto of_k = [&](index n) { return n * operands_of<BFloat16>(D); };
    const auto of_v = [&](index n) { return operands_of<BFloat16>(n) * round_up(Dv, lanes); };
    const bool all = (of_k(keys) + of_v(keys)) * kPair <= kSecondCacheBytes;
    rows = all ? keys : std::min(keys, kRowBlock);
    k = in_place ? 0 : of_k(rows);
    v = of_v(rows);
  }
};

/// What a forward tile of bfloat16 needs beside ForwardSizes, in values of four bytes.
struct PairTileSizes {
  index p, wide_k;  ///< tiles that run together share them
  index wide_q;     ///< the rows of k and q for biases
  index rows;       ///< of q as pairs while the tile begins, of o before they are rounded

  PairTileSizes(index D, index Dv, index stride, bool has_bias, index lanes)
      : p(operands_of<BFloat16>(kRowBlock) * stride),
        wide_k(has_bias ? kRowBlock * round_up(D, lanes) : 0),
        wide_q(has_bias ? stride * round_up(D, lanes) : 0),
        rows(stride * std::max(operands_of<BFloat16>(D), round_up(Dv, lanes))) {}
};

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
  const ForwardSizes sizes(D, Dv, kLaneTile);
  const index cache = panel_lanes < kLaneTile ? kSecondCacheBytes / 8 : kSecondCacheBytes;
  return tiles_together(bytes_of_keys<T>(keys, D, Dv), (sizes.own() + observed) * kSize, cache);
}

/// The widths of a call, exact and rounded up to whole vectors.
struct BackwardWidths {
  index D, Dv, Dp, Dvp;
};

/// Values of each buffer of a backward tile of `keys` keys, whose rows have `stride` values.
struct BackwardSizes {
  index kt, vt, k;
  index s;  ///< of s and dp each
  index inputs, dk, dv;

  BackwardSizes(const BackwardWidths& widths, index keys, index stride, index kept_scores)
      : kt(widths.D * stride),
        vt(widths.Dv * stride),
        k(keys * widths.Dp),
        s(kRowBlock * stride),
        inputs(kept_scores * kRowBlock * stride),
        dk(stride * widths.Dp),
        dv(stride * widths.Dvp) {}
  index own() const { return kt + vt + k + dk + dv; }  ///< they share s, dp and inputs
  index total() const { return own() + 2 * s + inputs; }
};

/// What a backward tile of bfloat16 needs in place of these, in values of four bytes.
struct PairBackwardSizes {
  index own, shared;
  index rows;  ///< of k or v as pairs, while a tile begins

  PairBackwardSizes(const BackwardWidths& widths, const BackwardSizes& sizes, index keys,
                    bool has_parts)
      : own((sizes.kt + sizes.vt + sizes.k + keys) / 2 + sizes.dk + sizes.dv +
            (has_parts ? sizes.k : 0)),
        shared(2 * sizes.s + sizes.inputs + 3 * operands_of<BFloat16>(sizes.s) +
               (has_parts ? kRowBlock * (widths.Dp + widths.Dvp) : 0)),
        rows(keys * operands_of<BFloat16>(std::max(widths.D, widths.Dv))) {}
  index values(index tiles) const { return shared + rows + tiles * own; }
};

/// Key tiles of a chunk that sees `queries` queries.
template <class T>
index key_tiles_together(const BackwardWidths& widths, index queries) {
  constexpr index kSize = sizeof(Wide<T>);
  const index q_dq_d_o = 2 * widths.Dp + widths.Dvp;
  const BackwardSizes sizes(widths, kLaneTile, kLaneTile, 0);
  return tiles_together(queries * q_dq_d_o * kSize, sizes.own() * kSize);
}

/// Scratch of the thread that calls, and of each other that works for it.
struct ThreadScratch {
  double caller = 0;
  double worker = 0;
};

}  // namespace fovea::detail
