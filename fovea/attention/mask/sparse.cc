// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/mask/sparse.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

// The range of distances j - p in a tile. Each distance from `low` to `high` occurs.
struct Distances {
  index low, high;

  explicit Distances(const TileSite& site)
      : low(site.key - site.sequence.position(site.query + site.queries - 1)),
        high(site.key + site.keys - 1 - site.sequence.position(site.query)) {}
};

index checked_rate(std::string_view mask, index rate) {
  check(rate >= 1, "{}: the rate must be at least 1; got {}", mask, rate);
  return rate;
}

// Along the lanes of a tile the distance increases (keys) or decreases (queries) by one, so every
// row reads a part of one list.
template <class T>
void keep_distances(const DistanceMask& mask, const TileSite& site, const ScoreTile<T>& tile) {
  const Distances distances(site);
  const bool rising = tile.lanes == TileLanes::kKeys;
  std::vector<char> kept;
  kept.reserve(static_cast<std::size_t>(distances.high - distances.low + 1));
  for (index d = distances.low; d <= distances.high; ++d) {
    kept.push_back(mask.keeps_distance(rising ? d : distances.high + distances.low - d) ? 1 : 0);
  }
  const index rows = rising ? site.queries : site.keys;
  const index lanes = rising ? site.keys : site.queries;
  for (index r = 0; r < rows; ++r) {
    const char* const keep = kept.data() + (rows - 1 - r);
    T* const scores = tile.data + r * tile.stride;
    for (index lane = 0; lane < lanes; ++lane) {
      scores[lane] = keep[lane] != 0 ? scores[lane] : -std::numeric_limits<T>::infinity();
    }
  }
}

}  // namespace

TileKind DistanceMask::classify(const TileSite& site) const {
  const Distances distances(site);
  bool some = false, all = true;
  for (index d = distances.low; d <= distances.high; ++d) {
    const bool kept = keeps_distance(d);
    some = some || kept;
    all = all && kept;
  }
  return all ? TileKind::kAll : some ? TileKind::kSome : TileKind::kNone;
}

void DistanceMask::apply(const TileSite& site, const ScoreTile<float>& tile) const {
  keep_distances(*this, site, tile);
}
void DistanceMask::apply(const TileSite& site, const ScoreTile<double>& tile) const {
  keep_distances(*this, site, tile);
}

}  // namespace fovea::detail

namespace fovea::mask {

Dilated::Dilated(index rate) : rate_(detail::checked_rate("dilated", rate)) {}

std::string Dilated::name() const { return fmt::format("dilated({})", rate_); }

Mask dilated(index rate, index left, index right) {
  const Dilated part(rate);
  const auto in_keys = [&](index steps) {
    return steps > 0 ? std::min(steps, std::numeric_limits<index>::max() / rate) * rate : steps;
  };
  return part & Window(in_keys(left), in_keys(right));
}

Strided::Strided(index rate) : rate_(detail::checked_rate("strided", rate)) {}

std::string Strided::name() const { return fmt::format("strided({})", rate_); }

}  // namespace fovea::mask
