// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/tile_cover.h"

namespace fovea::detail {

TileCover::TileCover(index rows, index lanes) : row_count_(rows), lane_count_(lanes) {
  std::fill(std::begin(lanes_), std::end(lanes_), Span{0, lanes});
  std::fill(std::begin(rows_), std::end(rows_), Span{0, rows});
}

TileCover::TileCover(const Mask& mask, const TileSite& site, TileLanes lanes, index stride)
    : row_count_(lanes == TileLanes::kQueries ? site.keys : site.queries), lane_count_(stride) {
  const bool of_queries = lanes == TileLanes::kQueries;
  const index origin = of_queries ? site.query : site.key;
  for (index row = 0; row < row_count_; row += kStep) {
    const index rows = std::min(kStep, row_count_ - row);
    const auto [begin, end] =
        of_queries ? mask.query_range(site.sequence, site.head, site.key + row, rows)
                   : mask.key_range(site.sequence, site.head, site.query + row, rows);
    const index first = std::clamp<index>(begin - origin, 0, stride) / kStep * kStep;
    const index last = (std::clamp<index>(end - origin, 0, stride) + kStep - 1) / kStep * kStep;
    if (first < last) lanes_[row / kStep] = {first, std::min(last, stride)};
  }
  find_rows();
}

Span TileCover::shared_rows() const {
  Span shared = rows_[0];
  for (index lane = kStep; lane < lane_count_; lane += kStep) {
    const Span& rows = rows_[lane / kStep];
    if (rows.begin != shared.begin) return {};
    shared.end = std::min(shared.end, rows.end);
  }
  return shared;
}

// For each step of lanes, the first and the last step of rows that the mask can keep.
void TileCover::find_rows() {
  for (index lane = 0; lane < lane_count_; lane += kStep) {
    Span& rows = rows_[lane / kStep];
    for (index row = 0; row < row_count_; row += kStep) {
      const Span& lanes = lanes_[row / kStep];
      if (lanes.end <= lane || lane + kStep <= lanes.begin) continue;
      if (rows.end == 0) rows.begin = row;
      rows.end = std::min(row + kStep, row_count_);
    }
  }
}

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
