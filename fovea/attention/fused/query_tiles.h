// SPDX-License-Identifier: Apache-2.0
// How a call is cut into pieces of work. What a row of a result is depends on the sizes of the
// problem alone.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/scratch_sizes.h"

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

  /// The same without regard to what follows.
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

/// Lanes of a vector of the current instruction set, and of the panels that its products read.
struct LaneCounts {
  index vector, panel;
};
template <class T>
LaneCounts lane_counts();

/// How the forward takes the tiles of one run, and the memory that they need.
struct RunSchedule {
  index together;      ///< tiles that use each block of keys in turn
  ForwardSizes sizes;  ///< of the buffers of the largest
  index observed;      ///< values of its observers
  index shared;        ///< values that the tiles share
  index own;           ///< values of each tile beside those sizes

  /// All values that are allocated.
  index values() const { return shared + sizes.s + together * (sizes.own() + own + observed); }
};

/// For a run that sees `keys` keys.
template <class T>
RunSchedule schedule_of(const KernelCall<T>& call, const QueryRun& run, index keys,
                        const LaneCounts& lanes);

/// Work of a whole query tile of the longest sequence, without regard to the mask.
template <class T>
double tile_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in);

/// Work of the backward of the longest sequence under one group of heads, likewise.
template <class T>
double unit_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in);

}  // namespace fovea::detail
