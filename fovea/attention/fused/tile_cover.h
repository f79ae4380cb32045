// SPDX-License-Identifier: Apache-2.0
// What a mask keeps: the tiles of a sequence, and the parts of a tile. The rest is skipped.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/simd/isa.h"

namespace fovea::detail {

/// The smallest range of whole operands, counted from the start of the sequence, that holds `span`
/// and ends by `count`. Its part beyond `span` is masked.
template <class T>
Span whole_operands(Span span, index count) {
  if (span.begin >= span.end) return span;
  constexpr index kValues = kOperandValues<T>;
  return {span.begin / kValues * kValues, std::min(operands_of<T>(span.end) * kValues, count)};
}

/// Sets some lanes of some rows of a tile whose rows have `stride` values.
template <class T>
void fill_lanes(T* tile, index stride, Span rows, Span lanes, T value) {
  for (index r = rows.begin; r < rows.end; ++r) {
    std::fill(tile + r * stride + lanes.begin, tile + r * stride + lanes.end, value);
  }
}

/// A tile in steps of 16 rows and 16 lanes, whole vectors of every instruction set. Under a causal
/// mask a diagonal square of 64 x 64 becomes 10 of its 16 steps. Scores outside the parts are
/// outside the mask's ranges, so apply() sets them to -infinity.
class TileCover {
 public:
  /// The whole tile.
  TileCover(index rows, index lanes);
  /// The part of a tile inside the mask's ranges; rows have `stride` values.
  TileCover(const Mask& mask, const TileSite& site, TileLanes lanes, index stride);

  /// Calls f(rows, lanes) for each run of rows with the same lanes, ascending; none without lanes.
  template <class F>
  void for_each_rows(F&& f) const {
    for_each_run(lanes_, row_count_, [&](Span rows, Span lanes) {
      if (lanes.begin < lanes.end) f(rows, lanes);
    });
  }

  /// Calls f(lanes, rows) for each run of lanes with the same rows, ascending: rows may be empty,
  /// and where a mask has holes they are included.
  template <class F>
  void for_each_lanes(F&& f) const {
    for_each_run(rows_, lane_count_, f);
  }

  /// Calls f(rows, lanes) for what for_each_rows() leaves out.
  template <class F>
  void for_each_rest(F&& f) const {
    for_each_run(lanes_, row_count_, [&](Span rows, Span lanes) {
      if (lanes.begin > 0) f(rows, Span{0, lanes.begin});
      if (lanes.end < lane_count_) f(rows, Span{lanes.end, lane_count_});
    });
  }

  /// The rows that all lanes have, if all begin with the same row; else none.
  Span shared_rows() const;

  /// Calls f(lanes, rows) for what lanes have beyond shared_rows(), which must not be none: few
  /// pieces of many lanes, those of a lane ascending.
  template <class F>
  void for_each_beyond(F&& f) const {
    for_each_beyond(Span{0, lane_count_}, shared_rows().end, f);
  }

 private:
  static constexpr index kStep = 16;
  static_assert(kRowBlock % kStep == 0 && kLaneTile % kStep == 0);

  template <class F>
  static void for_each_run(const Span* spans, index count, F&& f) {
    for (index begin = 0; begin < count;) {
      index end = begin + kStep;
      while (end < count && spans[end / kStep] == spans[begin / kStep]) end += kStep;
      f(Span{begin, std::min(end, count)}, spans[begin / kStep]);
      begin = end;
    }
  }
  // Calls f for the rows from `begin` that all these lanes share, then for the rest of each half.
  template <class F>
  void for_each_beyond(Span lanes, index begin, F& f) const {
    index end = rows_[lanes.begin / kStep].end;
    for (index lane = lanes.begin; lane < lanes.end; lane += kStep) {
      end = std::min(end, rows_[lane / kStep].end);
    }
    if (begin < end) f(lanes, Span{begin, end});
    const index steps = (lanes.end - lanes.begin + kStep - 1) / kStep;
    if (steps <= 1) return;
    const index half = lanes.begin + (steps + 1) / 2 * kStep;
    for_each_beyond(Span{lanes.begin, half}, end, f);
    for_each_beyond(Span{half, lanes.end}, end, f);
  }
  void find_rows();

  index row_count_;
  index lane_count_;
  Span lanes_[kRowBlock / kStep];  // of each step of rows
  Span rows_[kLaneTile / kStep];   // of each step of lanes
};

/// The cover of the products of a tile. On tile registers, computing the whole of a cut tile takes
/// less time than computing its parts.
template <class T>
TileCover cover_of(const Mask& mask, const TileSite& site, TileKind kind, TileLanes lanes,
                   index stride) {
  const bool skips = kind == TileKind::kSome && !(kReadsPairs<T> && has_tiles());
  if (skips) return {mask, site, lanes, stride};
  return {lanes == TileLanes::kQueries ? site.keys : site.queries, stride};
}

/// Calls visit(site, kind) for each tile that is computed: the 64 queries from `query` on, and up
/// to 128 keys within the mask's range. Returns how many tiles were classified.
template <class Visit>
index for_each_kept_tile_of(const Mask& mask, const Sequence& sequence, index head, index query,
                            const Visit& visit) {
  const index queries = std::min(kLaneTile, sequence.queries - query);
  const auto [begin, end] = mask.key_range(sequence, head, query, queries);
  index seen = 0;
  for (index key = begin; key < end; key += kRowBlock - key % kRowBlock, ++seen) {
    const index keys = std::min(kRowBlock - key % kRowBlock, end - key);
    const TileSite site{sequence, head, query, queries, key, keys};
    const TileKind kind = mask.classify(site);
    if (kind != TileKind::kNone) visit(site, kind);
  }
  return seen;
}

/// Visits the kept tiles of all queries of the sequence.
template <class Visit>
void for_each_kept_tile(const Mask& mask, const Sequence& sequence, index head,
                        const Visit& visit) {
  for (index query = 0; query < sequence.queries; query += kLaneTile) {
    for_each_kept_tile_of(mask, sequence, head, query, visit);
  }
}

/// A line for each 64 queries, a character for each 128 keys: '.' is never computed, '#' computed
/// whole, '/' in part or masked.
std::vector<std::string> picture_of_tiles(const Mask& mask, const Sequence& sequence, index head);

}  // namespace fovea::detail
