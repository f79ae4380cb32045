// SPDX-License-Identifier: Apache-2.0
#include "cli/confused_pairs.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace fovea::cli {

std::string confused_pairs(const ConfusionMatrix& matrix,
                           const std::function<std::string(index)>& name) {
  struct Pair {
    index truth, predicted, count;
  };
  std::vector<Pair> pairs;
  for (index t = 0; t < matrix.classes; ++t) {
    for (index p = 0; p < matrix.classes; ++p) {
      if (t != p && matrix.at(t, p) > 0) pairs.push_back({t, p, matrix.at(t, p)});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.count > b.count; });
  constexpr std::size_t kMost = 20;
  pairs.resize(std::min(kMost, pairs.size()));
  std::string lines;
  for (const auto& [truth, predicted, count] : pairs) {
    lines += fmt::format("{:>8}  {} taken for {}\n", count, name(truth), name(predicted));
  }
  return lines;
}

}  // namespace fovea::cli
