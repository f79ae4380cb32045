// SPDX-License-Identifier: Apache-2.0
// How a call is cut into pieces of work: by the sizes of the problem alone.
#pragma once

#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/attention/kernel.h"

namespace fovea {

/// The query tiles of every sequence and head, in groups large enough to hand over: a tile of a
/// small model takes a microsecond. Within a head the last tile comes first: under a causal mask it
/// is the largest.
class QueryTiles {
 public:
  /// `tile_flops`: work of a whole tile.
  QueryTiles(const std::vector<Sequence>& sequences, index heads, double tile_flops);

  index items() const { return (total_ + group_ - 1) / group_; }

  /// f(sequence, head, first query of the tile).
  template <class F>
  void for_each_of(index item, F&& f) const {
    const index end = (item + 1) * group_ < total_ ? (item + 1) * group_ : total_;
    for (index n = item * group_; n < end; ++n) {
      const Place place = find(n);
      f(*place.sequence, place.head, place.query);
    }
  }

 private:
  struct Place {
    const Sequence* sequence;
    index head;
    index query;
  };
  Place find(index n) const;

  const std::vector<Sequence>& sequences_;
  std::vector<index> first_;  // number of the first tile of each sequence
  index heads_;
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
