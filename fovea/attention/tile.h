// SPDX-License-Identifier: Apache-2.0
// The inputs of masks, biases and score functions: one score, and a tile of scores.
#pragma once

#include <algorithm>

#include "fovea/base/types.h"
#include "fovea/base/view.h"

namespace fovea {

/// The position of query 0 among the keys of its sequence.
enum class Align {
  kBottomRight,  ///< query i has position i + S' - T': the last query sees the last key
  kTopLeft,      ///< query i has position i
};

/// The sizes of a call.
struct AttentionSizes {
  index B, T, S;  ///< batch, rows of q, rows of k and v
  index H, G;     ///< heads of q, heads of k and v
  index D, Dv;    ///< width of q and k, width of v
};

/// One sequence of the call: its lengths T' and S' (from lengths or offsets) and its rows in the
/// views. Parts get i and j counted from the start of the sequence, so padding, packing and the
/// order of a batch do not change their results.
struct Sequence {
  index number = 0;     ///< batch row, or number of the packed sequence
  index batch = 0;      ///< batch row in the views (0 when packed)
  index query_row = 0;  ///< row of query 0 in the views
  index key_row = 0;    ///< row of key 0 in the views
  index queries = 0;    ///< T'
  index keys = 0;       ///< S'
  Align align = Align::kBottomRight;

  /// Position of query i on the axis of the keys.
  index position(index i) const { return align == Align::kTopLeft ? i : i + keys - queries; }
};

/// One score: query i and key j of a sequence, under one head.
struct ScoreSite {
  const Sequence& sequence;
  index head;
  index i;
  index j;

  /// Position of the query; compare it with j.
  index position() const { return sequence.position(i); }
};

/// The rectangle queries [query, query + queries) x keys [key, key + keys) of one sequence and
/// head.
struct TileSite {
  const Sequence& sequence;
  index head;
  index query;
  index queries;
  index key;
  index keys;

  ScoreSite at(index r, index c) const { return {sequence, head, query + r, key + c}; }
};

/// Queries in the lanes of a forward tile; keys in those of a backward one.
inline constexpr index kLaneTile = 64;
/// Rows of a tile: keys of the forward, queries of the backward. 48 to 192 are alike on long
/// sequences; at 128 tokens one block is 4 % (forward) and 2 % (backward) faster than 96 and 32.
/// Blocks start at multiples of it from the start of the sequence, whatever the mask: what a row
/// adds, and in which order, depends on its sequence alone.
inline constexpr index kRowBlock = 128;

/// Which scores of a tile a mask keeps.
enum class TileKind { kNone, kSome, kAll };

/// Which axis of a tile is contiguous: the forward holds queries in its lanes, the backward keys.
enum class TileLanes { kQueries, kKeys };

/// A tile of scores while it is in the L1 cache.
template <class T>
struct ScoreTile {
  T* data;
  index stride;  ///< values from one row to the next; rows run along the axis not in `lanes`
  TileLanes lanes;

  /// Score of the r-th query and the c-th key of the tile.
  T& at(index r, index c) const {
    return lanes == TileLanes::kQueries ? data[c * stride + r] : data[r * stride + c];
  }
  /// The tile as it lies in memory: rows of lanes.
  Rows<T> rows(const TileSite& site) const {
    if (lanes == TileLanes::kQueries) return {data, site.keys, site.queries, stride};
    return {data, site.queries, site.keys, stride};
  }
};

/// The rows of q and k of one score, unscaled, and the scale of their product.
template <class T>
struct ScoreRows {
  Vec<const T> q;  ///< [D]
  Vec<const T> k;  ///< [D]
  T scale;
};

/// The sums that the backward of one score adds to: gradients of its rows of q and k, and of the
/// part's parameters.
template <class T>
struct ScoreGradients {
  Vec<T> dq;           ///< [D]
  Vec<T> dk;           ///< [D]
  double* parameters;  ///< gradient_size() sums of this head
};

/// The rows of q and k that a tile of scores is made of.
template <class T>
struct TileRows {
  Rows<const T> q;  ///< [queries, D]
  Rows<const T> k;  ///< [keys, D]
  T scale = 1;
  Rows<const T> scaled_q = {};  ///< scale * q if the kernel has it, else empty

  ScoreRows<T> at(index r, index c) const { return {{q[r], q.columns}, {k[c], k.columns}, scale}; }
};

/// The sums that the backward of a tile adds to.
template <class T>
struct TileGradients {
  Rows<T> dq;          ///< [queries, D]
  Rows<T> dk;          ///< [keys, D]
  double* parameters;  ///< gradient_size() sums of this head, sequence and chunk of keys

  ScoreGradients<T> at(index r, index c) const {
    return {{dq[r], dq.columns}, {dk[c], dk.columns}, parameters};
  }
};

}  // namespace fovea

namespace fovea::detail {

/// [begin, end)
struct Span {
  index begin = 0;
  index end = 0;

  bool operator==(const Span&) const = default;
};
/// From the first of both to the last.
inline Span hull(const Span& a, const Span& b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

}  // namespace fovea::detail
