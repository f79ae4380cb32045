// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/band.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

// Larger than any position, small enough to be added to one.
constexpr index kFar = index{1} << 60;

index finite(index bound) { return bound == kOpen ? kFar : std::min(bound, kFar); }

void check_reach(std::string_view mask, Reach reach) {
  check(reach.left >= kOpen && reach.right >= kOpen, Hint{"kOpen (-1) leaves a side open"},
        "{}: a bound must be {} (open) or at least 0; got left {}, right {}", mask, kOpen,
        reach.left, reach.right);
}

}  // namespace

Reach BandMask::finite_reach(index head) const {
  const Reach wanted = reach(head);
  return {finite(wanted.left), finite(wanted.right)};
}

bool BandMask::keeps(const ScoreSite& site) const {
  const auto [left, right] = finite_reach(site.head);
  const index p = site.position();
  return site.j >= p - left && site.j <= p + right;
}

TileKind BandMask::classify(const TileSite& site) const {
  const auto [left, right] = finite_reach(site.head);
  const index first = site.sequence.position(site.query);
  const index last = first + site.queries - 1;
  const index last_key = site.key + site.keys - 1;
  if (last_key < first - left || site.key > last + right) return TileKind::kNone;
  const bool all = site.key >= last - left && last_key <= first + right;
  return all ? TileKind::kAll : TileKind::kSome;
}

template <class T>
void BandMask::apply_band(const TileSite& site, const ScoreTile<T>& tile) const {
  const auto [left, right] = finite_reach(site.head);
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

std::pair<index, index> BandMask::key_range(const Sequence& sequence, index head, index query,
                                            index queries) const {
  const auto [left, right] = finite_reach(head);
  const index first = sequence.position(query);
  const index last = first + queries - 1;
  const index begin = std::clamp<index>(first - left, 0, sequence.keys);
  const index end = std::clamp<index>(last + right + 1, 0, sequence.keys);
  return {begin, std::max(begin, end)};
}

std::pair<index, index> BandMask::query_range(const Sequence& sequence, index head, index key,
                                              index keys) const {
  // Query i keeps key j where j - right <= position(i) <= j + left.
  const auto [left, right] = finite_reach(head);
  const index shift = sequence.position(0);
  const index last_key = key + keys - 1;
  const index begin = std::clamp<index>(key - right - shift, 0, sequence.queries);
  const index end = std::clamp<index>(last_key + left + 1 - shift, 0, sequence.queries);
  return {begin, std::max(begin, end)};
}

}  // namespace fovea::detail

namespace fovea::mask {

std::string Causal::name() const {
  return align_ == Align::kTopLeft ? "causal(top-left)" : "causal";
}

Reach Past::finite_reach(index head) const { return {BandMask::finite_reach(head).left, -1}; }

Window::Window(index left, index right) : reach_{left, right} {
  detail::check_reach("window", reach_);
}

std::string Window::name() const {
  return fmt::format("window({}, {})", reach_.left, reach_.right);
}

void HeadWindows::name_memory(OverlapCheck& memory) const { memory.read("windows", bounds_); }

void HeadWindows::check_shape(const AttentionSizes& sizes) const {
  check(bounds_.rows == sizes.H && bounds_.columns == 2,
        "attention: windows must be [H={}, 2]; they are [{}, {}]", sizes.H, bounds_.rows,
        bounds_.columns);
  check(sizes.H == 0 || bounds_.data != nullptr, "attention: windows have a shape but no data");
  for (index h = 0; h < sizes.H; ++h) {
    detail::check_reach(fmt::format("attention: windows[{}]", h), reach(h));
  }
}

}  // namespace fovea::mask
