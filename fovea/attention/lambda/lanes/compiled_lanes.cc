// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/lanes/compiled_lanes.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "fovea/simd/prefetch.h"

namespace fovea::detail {

namespace {

// The rows of a table [.., T, S] or [.., S, T] that a tile reads; of other tables, none.
template <class V>
Rows<const V> rows_of_tile(const V* table, const TableRead::Spot& spot, const TileSite& site) {
  const V* const first = table + spot.constant + spot.of_i * site.query + spot.of_j * site.key;
  if (spot.of_j == 1 && spot.of_i > 1) return {first, site.queries, site.keys, spot.of_i};
  if (spot.of_i == 1 && spot.of_j > 1) return {first, site.keys, site.queries, spot.of_j};
  return {};
}

}  // namespace

template <class T>
bool CompiledLanes<T>::compile(int result) {
  if (tape_.is_valid() && differentiates_) result = tape_.differentiate(result);
  if (!tape_.is_valid()) return false;
  for (const KnownGradient& known : tape_.known_gradients()) {
    int* const end = sums_.data() + sum_count_;
    if (std::find(sums_.data(), end, known.sum) == end) sums_[sum_count_++] = known.sum;
  }
  lanes_.emplace(tape_, result, std::span<const int>(sums_.data(), sum_count_));
  return true;
}

template <class T>
const TableRead* CompiledLanes<T>::apply(const TileSite& site, const ScoreTile<T>& tile) const {
  const Rows<T> values = tile.rows(site);
  return read(run_lanes<T>(tape_, *lanes_, {values, values, tile.lanes, site.query, site.key},
                           nullptr, nullptr));
}

template <class T>
const TableRead* CompiledLanes<T>::pull(const TileSite& site, const ScoreTile<T>& scores,
                                        const ScoreTile<T>& dscores, double* parameters) const {
  std::array<double, LaneTape::kMostKnown> sums;
  const int beyond = run_lanes<T>(
      tape_, *lanes_, {scores.rows(site), dscores.rows(site), dscores.lanes, site.query, site.key},
      sums.data(), parameters);
  for (const KnownGradient& known : tape_.known_gradients()) {
    const auto number =
        std::find(sums_.data(), sums_.data() + sum_count_, known.sum) - sums_.data();
    const double sum = sums[static_cast<std::size_t>(number)];
    tape_.pull_known(known.known, known.scale * sum, parameters);
  }
  return read(beyond);
}

template <class T>
void CompiledLanes<T>::prefetch_apply(const TileSite& site, Prefetch& prefetch) const {
  for (const TableRead& read : tape_.reads()) {
    with_values(read.table, [&](const auto* values) {
      prefetch.add_soon(rows_of_tile(values, read.at, site));
    });
  }
}

template <class T>
void CompiledLanes<T>::prefetch_pull(const TileSite& site, Prefetch& prefetch) const {
  for (const TableRead& read : tape_.reads()) {
    if (read.gradient == nullptr) continue;
    prefetch.add_soon(rows_of_tile(static_cast<const T*>(read.gradient), read.gradient_at, site));
  }
}

template class CompiledLanes<float>;
template class CompiledLanes<double>;

}  // namespace fovea::detail
