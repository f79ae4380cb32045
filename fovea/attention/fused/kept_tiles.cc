// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/kept_tiles.h"

namespace fovea::detail {

std::vector<std::string> picture_of_tiles(const Mask& mask, const Sequence& sequence, index head) {
  const auto count = [](index values, index of) {
    return static_cast<std::size_t>((values + of - 1) / of);
  };
  const std::string none(count(sequence.keys, kRowBlock), '.');
  std::vector<std::string> lines(count(sequence.queries, kLaneTile), none);
  for_each_kept_tile(mask, sequence, head, [&](const TileSite& site, TileKind kind) {
    const index block = site.key / kRowBlock * kRowBlock;
    const bool whole = site.keys == std::min(kRowBlock, sequence.keys - block);
    lines[static_cast<std::size_t>(site.query / kLaneTile)]
         [static_cast<std::size_t>(block / kRowBlock)] =
             whole && kind == TileKind::kAll ? '#' : '/';
  });
  return lines;
}

}  // namespace fovea::detail
