// SPDX-License-Identifier: Apache-2.0
// How a call is cut into pieces of work: by the sizes of the problem alone.
#pragma once

#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/attention/kernel.h"

namespace fovea {

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
  /// `tile_flops`: work of a whole tile.
  QueryTiles(const std::vector<Sequence>& sequences, index heads, double tile_flops);

  index items() const { return (total_ + group_ - 1) / group_; }

  /// Calls f(run) for each run of tiles of one head that the item holds.
  template <class F>
  void for_each_run(index item, F&& f) const {
    const index end = (item + 1) * group_ < total_ ? (item + 1) * group_ : total_;
    for (index n = item * group_; n < end;) {
      const Place place = find(n);
      const index tiles = end - n < place.tile + 1 ? end - n : place.tile + 1;
      const index first = (place.tile + 1 - tiles) * kLaneTile;
      const index last = (place.tile + 1) * kLaneTile;
      const index queries = place.sequence->queries;
      f(QueryRun{*place.sequence, place.head, first, last < queries ? last : queries});
      n += tiles;
    }
  }

 private:
  struct Place {
    const Sequence* sequence;
    index head;
    index tile;
  };
  Place find(index n) const;

  const std::vector<Sequence>& sequences_;
  std::vector<index> first_;  // number of the first tile of each sequence
  index total_ = 0;
  index group_ = 1;
};

/// Work of a whole query tile of the longest sequence, without regard to the mask.
template <class T>
double tile_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in);

/// Rows of o, lse and weights that belong to no sequence: 0, -inf, 0. Weights of a sequence's rows
/// start at 0 as well, since what the mask drops is never computed.
template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences, const AttentionOutputs<T>& out);

/// The same for rows of dq, dk and dv.
template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences,
                     const AttentionGradients<T>& gradients);

}  // namespace fovea
