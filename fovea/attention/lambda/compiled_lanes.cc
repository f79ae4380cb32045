// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/compiled_lanes.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "fovea/attention/lambda/run_lanes.h"

namespace fovea::detail {

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

template class CompiledLanes<float>;
template class CompiledLanes<double>;

}  // namespace fovea::detail
