// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/query_tiles.h"

#include <algorithm>

#include "fovea/attention/fused/observed_tile.h"

namespace fovea::detail {

namespace {

// About ten microseconds of one core.
constexpr double kGroupFlops = 1e6;
// Tiles of one item reuse the keys in the cache. Items are made larger as long as each thread still
// has this many of them.
constexpr index kItemsOfThread = 8;
// Up to this many tiles: a copy of the keys (copies_all_keys) then serves 1024 queries.
constexpr index kMostTilesOfItem = 16;

}  // namespace

QueryTiles::QueryTiles(const std::vector<Sequence>& sequences, index heads, double tile_flops,
                       int threads)
    : sequences_(sequences) {
  for (const Sequence& sequence : sequences) {
    first_.push_back(total_);
    total_ += (sequence.queries + kLaneTile - 1) / kLaneTile * heads;
  }
  const auto worthwhile = static_cast<index>(kGroupFlops / std::max(tile_flops, 1.0));
  const index shared = total_ / (kItemsOfThread * threads);
  group_ = std::max(std::clamp<index>(shared, 1, kMostTilesOfItem), worthwhile);
}

QueryTiles::Place QueryTiles::find(index n) const {
  // The last sequence that starts at or before n; empty ones share their start with the next.
  const auto after = std::upper_bound(first_.begin(), first_.end(), n);
  const auto which = static_cast<std::size_t>(after - first_.begin() - 1);
  const Sequence& sequence = sequences_[which];
  const index tiles = (sequence.queries + kLaneTile - 1) / kLaneTile;
  const index within = n - first_[which];
  return {&sequence, within / tiles, tiles - 1 - within % tiles};
}

QueryRun QueryTiles::run_at(index n, index end) const {
  const Place place = find(n);
  const index tiles = std::min(end - n, place.tile + 1);
  return {*place.sequence, place.head, (place.tile + 1 - tiles) * kLaneTile,
          std::min((place.tile + 1) * kLaneTile, place.sequence->queries)};
}

// Six tiles took 1.00 to 1.03 of the time with a copy, eight .98, sixteen .94 (12 heads of 64).
template <class T>
bool copies_all_keys(const KernelCall<T>& call, const QueryRun& run, const HeadKeys<T>& head) {
  constexpr index kEnoughUses = 8;
  if (head.k.contiguous() && head.v.contiguous()) return false;
  if (bytes_of_keys<T>(head.k.rows, head.k.columns, head.v.columns) > kSecondCacheBytes) {
    return false;
  }
  index uses = 0;
  for (index query = run.query_begin; query < run.query_end; query += kLaneTile) {
    const index queries = std::min(kLaneTile, run.query_end - query);
    const auto [begin, end] = call.attention.mask.key_range(run.sequence, run.head, query, queries);
    uses += std::max<index>(0, end - begin);
  }
  return uses >= kEnoughUses * head.k.rows;
}

template <class T>
RunSchedule<T> schedule_of(const KernelCall<T>& call, const QueryRun& run, const HeadKeys<T>& keys,
                           const LaneCounts& lanes) {
  const index D = call.in.q.width, Dv = call.in.v.width;
  const index queries = run.query_end - run.query_begin;
  const index tiles = (queries + kLaneTile - 1) / kLaneTile;
  const index largest = std::min(queries, kLaneTile), stride = round_up(largest, lanes.vector);
  const auto observed = [&](index rows) {
    return observer_values(*call.observe, run.sequence, rows);
  };
  const index most = query_tiles_together<T>(D, Dv, keys.k.rows, observed(kLaneTile), lanes.panel);
  KvSizes kv = kv_sizes(keys, largest, lanes);
  if constexpr (!kReadsPairs<T>) {
    if (kv.rows == 0 && copies_all_keys(call, run, keys)) {
      kv = copy_sizes(keys.k.rows, D, Dv);
      kv.all = true;
    }
  }
  return {std::min(tiles, most), kv,
          ForwardSizes<T>(widths_of(D, Dv, lanes), stride, call.bias_needs_rows()),
          observed(stride)};
}

template <class T>
double tile_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in) {
  double scores = 0;
  for (const Sequence& sequence : sequences) {
    const auto queries = static_cast<double>(std::min(sequence.queries, kLaneTile));
    scores = std::max(scores, queries * static_cast<double>(sequence.keys));
  }
  return scores * 2.0 * static_cast<double>(in.q.width + in.v.width);
}

template <class T>
double unit_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in) {
  const auto& [q, k, v] = in;
  double scores = 0;
  for (const Sequence& sequence : sequences) {
    scores = std::max(scores,
                      static_cast<double>(sequence.queries) * static_cast<double>(sequence.keys));
  }
  const double heads =
      static_cast<double>(q.heads) / static_cast<double>(std::max<index>(1, k.heads));
  return scores * heads * static_cast<double>(6 * q.width + 4 * v.width);
}

template bool copies_all_keys(const KernelCall<float>&, const QueryRun&, const HeadKeys<float>&);
template RunSchedule<float> schedule_of(const KernelCall<float>&, const QueryRun&,
                                        const HeadKeys<float>&, const LaneCounts&);
template RunSchedule<double> schedule_of(const KernelCall<double>&, const QueryRun&,
                                         const HeadKeys<double>&, const LaneCounts&);
template RunSchedule<BFloat16> schedule_of(const KernelCall<BFloat16>&, const QueryRun&,
                                           const HeadKeys<BFloat16>&, const LaneCounts&);
template double tile_flops(const std::vector<Sequence>&, const AttentionInputs<float>&);
template double tile_flops(const std::vector<Sequence>&, const AttentionInputs<double>&);
template double tile_flops(const std::vector<Sequence>&, const AttentionInputs<BFloat16>&);
template double unit_flops(const std::vector<Sequence>&, const AttentionInputs<float>&);
template double unit_flops(const std::vector<Sequence>&, const AttentionInputs<double>&);
template double unit_flops(const std::vector<Sequence>&, const AttentionInputs<BFloat16>&);

}  // namespace fovea::detail
