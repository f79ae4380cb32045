// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/length_batches.h"

#include <algorithm>
#include <numeric>

namespace fovea {

LengthBatches::LengthBatches(const std::vector<index>& lengths, const BatchSizes& sizes,
                             index threads)
    : order_(lengths.size()), ends_{0} {
  const auto length = [&](index input) { return lengths[static_cast<std::size_t>(input)]; };
  std::iota(order_.begin(), order_.end(), index{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](index a, index b) { return length(a) > length(b); });
  const auto count = static_cast<index>(lengths.size());
  const bool by_length = sizes.unit == BatchUnit::kLengths;
  const index all = by_length ? std::accumulate(lengths.begin(), lengths.end(), index{0}) : count;
  const index most =
      std::clamp(all / (sizes.of_thread * threads), std::min(sizes.fewest, sizes.most), sizes.most);
  index held = 0;
  for (index i = 0; i < count; ++i) {
    const index more = by_length ? length(order_[static_cast<std::size_t>(i)]) : 1;
    if (i > 0 && held + more > most) {
      ends_.push_back(i);
      held = 0;
    }
    held += more;
  }
  if (count > 0) ends_.push_back(count);
}

}  // namespace fovea
