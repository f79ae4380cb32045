// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/band.h"

#include <algorithm>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// Larger than any position, small enough to be added to one.
constexpr index kFar = index{1} << 60;

}  // namespace

BandMask::BandMask(index left, index right) : left_(left), right_(right) {
  check(left >= kOpen && right >= kOpen,
        "window: a bound must be {} (open) or at least 0; got left {}, right {}", kOpen, left,
        right);
  left_ = std::min(left, kFar);
  right_ = std::min(right, kFar);
}

bool BandMask::keeps(const ScoreSite& site) const {
  const index p = site.position();
  return (left_ == kOpen || site.j >= p - left_) && (right_ == kOpen || site.j <= p + right_);
}

TileKind BandMask::classify(const TileSite& site) const {
  const index left = left_ == kOpen ? kFar : left_;
  const index right = right_ == kOpen ? kFar : right_;
  const index first = site.sequence.position(site.query);
  const index last = first + site.queries - 1;
  const index last_key = site.key + site.keys - 1;
  if (last_key < first - left || site.key > last + right) return TileKind::kNone;
  const bool all = site.key >= last - left && last_key <= first + right;
  return all ? TileKind::kAll : TileKind::kSome;
}

template <class T>
void BandMask::apply_band(const TileSite& site, const ScoreTile<T>& tile) const {
  const index left = left_ == kOpen ? kFar : left_;
  const index right = right_ == kOpen ? kFar : right_;
  const index p = site.sequence.position(site.query);  // of the tile's first query
  if (tile.lanes == TileLanes::kQueries) {
    // Query r keeps key j where j - right <= p + r <= j + left.
    for (index c = 0; c < site.keys; ++c) {
      const index j = site.key + c;
      keep_lanes(tile, c, site.queries, j - right - p, j + left - p + 1);
    }
    return;
  }
  for (index r = 0; r < site.queries; ++r) {
    keep_lanes(tile, r, site.keys, p + r - left - site.key, p + r + right - site.key + 1);
  }
}

void BandMask::apply(const TileSite& site, const ScoreTile<float>& tile) const {
  apply_band(site, tile);
}
void BandMask::apply(const TileSite& site, const ScoreTile<double>& tile) const {
  apply_band(site, tile);
}

std::pair<index, index> BandMask::key_range(const Sequence& sequence, index, index query,
                                            index queries) const {
  const index first = sequence.position(query);
  const index last = first + queries - 1;
  const index begin = left_ == kOpen ? 0 : std::clamp<index>(first - left_, 0, sequence.keys);
  const index end =
      right_ == kOpen ? sequence.keys : std::clamp<index>(last + right_ + 1, 0, sequence.keys);
  return {begin, std::max(begin, end)};
}

std::pair<index, index> BandMask::query_range(const Sequence& sequence, index, index key,
                                              index keys) const {
  // Query i keeps key j where j - right <= position(i) <= j + left.
  const index shift = sequence.position(0);
  const index last_key = key + keys - 1;
  const index T = sequence.queries;
  const index begin = right_ == kOpen ? 0 : std::clamp<index>(key - right_ - shift, 0, T);
  const index end = left_ == kOpen ? T : std::clamp<index>(last_key + left_ + 1 - shift, 0, T);
  return {begin, std::max(begin, end)};
}

namespace mask {

std::string Causal::name() const {
  return align_ == Align::kTopLeft ? "causal(top-left)" : "causal";
}

std::string Window::name() const { return fmt::format("window({}, {})", left_, right_); }

}  // namespace mask
}  // namespace fovea
