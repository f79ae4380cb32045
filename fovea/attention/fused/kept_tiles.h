// SPDX-License-Identifier: Apache-2.0
// The tiles of a sequence that a mask keeps, as the forward visits them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fovea/attention/fused/kernel_call.h"

namespace fovea::detail {

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
