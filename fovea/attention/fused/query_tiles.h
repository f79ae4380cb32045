// SPDX-License-Identifier: Apache-2.0
// How a call is cut into pieces of work. The bits of a row of a result depend on the sizes of the
// problem alone.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/attention/fused/tile_cover.h"

namespace fovea::detail {

/// Queries [query_begin, query_end) of one sequence and head: a run of whole tiles.
struct QueryRun {
  const Sequence& sequence;
  index head;
  index query_begin;
  index query_end;
};

/// The query tiles of every sequence and head, in groups: a tile of a small model takes a
/// microsecond, less than it costs to hand it over; and the tiles of a large one share the keys of
/// their head. Within a head the last tile comes first: under a causal mask it is the largest.
class QueryTiles {
 public:
  /// `tile_flops`: work of a whole tile. The results do not depend on `threads`. If user-defined
  /// parts throw for several tiles, it may decide which exception is thrown.
  QueryTiles(const std::vector<Sequence>& sequences, index heads, double tile_flops, int threads);

  index items() const { return (total_ + group_ - 1) / group_; }

  /// Calls f(run, next) for each run of tiles of one head that the item holds. `next` points to the
  /// run after it, in this item or else in item `then`; null if there is none (then = -1).
  template <class F>
  void for_each_run(index item, index then, F&& f) const {
    const index end = end_of(item);
    for (index n = item * group_; n < end;) {
      const QueryRun run = run_at(n, end);
      n += (run.query_end - run.query_begin + kLaneTile - 1) / kLaneTile;
      if (n == end && then < 0) {
        f(run, static_cast<const QueryRun*>(nullptr));
      } else {
        const QueryRun next = n < end ? run_at(n, end) : run_at(then * group_, end_of(then));
        f(run, &next);
      }
    }
  }

  /// Calls f(run) for each run, without the run that follows.
  template <class F>
  void for_each_run(index item, F&& f) const {
    for_each_run(item, -1, [&f](const QueryRun& run, const QueryRun*) { f(run); });
  }

 private:
  struct Place {
    const Sequence* sequence;
    index head;
    index tile;
  };
  Place find(index n) const;
  index end_of(index item) const { return std::min((item + 1) * group_, total_); }
  QueryRun run_at(index n, index end) const;

  const std::vector<Sequence>& sequences_;
  std::vector<index> first_;  // number of the first tile of each sequence
  index total_ = 0;
  index group_ = 1;
};

/// Keys [first, second) that the mask can keep for some query of the run.
inline std::pair<index, index> key_range(const Mask& mask, const QueryRun& run) {
  return mask.key_range(run.sequence, run.head, run.query_begin, run.query_end - run.query_begin);
}

/// Keys and values of one head, from key `first` on.
template <class T>
struct HeadKeys {
  index first;
  Rows<const T> k, v;
};

/// Keys [begin, end) of one sequence, as a query head reads them.
template <class T>
HeadKeys<T> keys_of(const KernelCall<T>& call, const Sequence& sequence, index head, Span keys) {
  const index group = group_of(head, call.in.q.heads, call.in.k.heads);
  const auto rows = [&](const View<const T>& view) {
    return Rows<const T>(view.row(sequence.batch, sequence.key_row + keys.begin, group),
                         std::max<index>(0, keys.end - keys.begin), view.width, view.length_stride);
  };
  return {keys.begin, rows(call.in.k), rows(call.in.v)};
}

/// keys_of for a plan, whose strides may reach beyond all memory: the addresses of rows are left
/// out, but for whether they are odd, which decides whether rows of bfloat16 are whole pairs.
template <class T>
HeadKeys<T> planned_keys_of(const KernelCall<T>& call, const Sequence& sequence, index head,
                            Span keys) {
  const index group = group_of(head, call.in.q.heads, call.in.k.heads);
  const auto rows = [&](const View<const T>& view) {
    const index row = sequence.key_row + keys.begin;
    const index place = (sequence.batch & view.batch_stride) ^ (row & view.length_stride) ^
                        (group & view.head_stride);  // modulo 2
    const bool odd = view.data != nullptr && place % 2 != 0;
    return Rows<const T>(odd ? view.data + 1 : view.data, std::max<index>(0, keys.end - keys.begin),
                         view.width, view.length_stride);
  };
  return {keys.begin, rows(call.in.k), rows(call.in.v)};
}

/// The keys that the mask can keep for some query of the run.
template <class T>
Span span_of_keys(const KernelCall<T>& call, const QueryRun& run) {
  const auto [begin, end] = key_range(call.attention.mask, run);
  return whole_operands<T>({begin, end}, run.sequence.keys);
}
template <class T>
HeadKeys<T> keys_of_run(const KernelCall<T>& call, const QueryRun& run) {
  return keys_of(call, run.sequence, run.head, span_of_keys(call, run));
}

/// Lanes of a vector of the current instruction set, and of the panels that its products read.
struct LaneCounts {
  index vector, panel;
};
template <class T>
LaneCounts lane_counts();

inline Widths widths_of(index D, index Dv, const LaneCounts& lanes) {
  return {D, Dv, round_up(D, lanes.vector), round_up(Dv, lanes.vector)};
}

/// Whether products of tiles of at most `queries` queries read such keys where they are. The
/// distance between rows of one head is often a multiple of 512 bytes, so that many share a set of
/// the first cache. Tile registers, which wait for it longest, get them side by side, unless they
/// read them once: for 32 queries.
inline bool reads_in_place(const Rows<const BFloat16>& k, index queries) {
  return are_whole_pairs(k) && (k.contiguous() || !has_tiles() || queries <= 32);
}

/// The sizes that KvBlocks needs for such keys and tiles of at most `queries` queries.
template <class T>
KvSizes kv_sizes(const HeadKeys<T>& head, index queries, const LaneCounts& lanes) {
  const index D = head.k.columns, Dv = head.v.columns;
  if constexpr (kReadsPairs<T>) {
    const bool in_place = reads_in_place(head.k, queries), on_tiles = has_tiles();
    return pair_sizes(head.k.rows, widths_of(D, Dv, lanes), in_place, on_tiles);
  } else {
    return queries > lanes.panel ? copy_sizes(kRowBlock, D, Dv) : KvSizes{};
  }
}

/// Whether a run reads a copy of its keys and values, all side by side, where products read them in
/// place otherwise: if its tiles read each key eight times or more, and the copy stays in the
/// second cache. Rows of one head among many share few sets of the caches, and the processor does
/// not ask for them in time.
template <class T>
bool copies_all_keys(const KernelCall<T>& call, const QueryRun& run, const HeadKeys<T>& head);

/// Whether a run is computed with keys in the lanes (few_queries-inl.h): one of so few queries that
/// most lanes of a tile would hold none. Observers, value parts and dropout need tiles.
template <class T>
bool takes_few_queries(const KernelCall<T>& call, const QueryRun& run, const LaneCounts& lanes) {
  constexpr index kLanesOfQuery = 2;
  return !kReadsPairs<T> && kLanesOfQuery * (run.query_end - run.query_begin) <= lanes.vector &&
         needs_lse(call.norm()) && call.observe->empty() && call.attention.values.empty() &&
         !call.dropout.active();
}

/// The buffers of such a run.
template <class T>
FewSizes few_sizes(const KernelCall<T>& call, const QueryRun& run, const LaneCounts& lanes) {
  const index queries = run.query_end - run.query_begin;
  return {widths_of(call.in.q.width, call.in.v.width, lanes), queries,
          round_up(queries, lanes.vector)};
}

/// How the forward takes the tiles of one run, and the memory that they need.
template <class T>
struct RunSchedule {
  index together;         ///< tiles that use each block of keys in turn
  KvSizes kv;             ///< of the keys and values that they share
  ForwardSizes<T> sizes;  ///< of the buffers of the largest
  index observed;         ///< values of its observers

  /// All values that are allocated.
  index values() const {
    return kv.values() + sizes.shared() + together * (sizes.own() + observed);
  }
};

/// For a run that sees `keys`.
template <class T>
RunSchedule<T> schedule_of(const KernelCall<T>& call, const QueryRun& run, const HeadKeys<T>& keys,
                           const LaneCounts& lanes);

/// Work of a whole query tile of the longest sequence, without regard to the mask.
template <class T>
double tile_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in);

/// Work of the backward of the longest sequence under one group of heads, likewise.
template <class T>
double unit_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in);

}  // namespace fovea::detail
