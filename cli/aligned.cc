// SPDX-License-Identifier: Apache-2.0
#include "cli/aligned.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/report/terminal.h"

namespace fovea::cli {

namespace {

std::string padding(std::string_view text, index columns) {
  return std::string(static_cast<std::size_t>(std::max<index>(columns - display_width(text), 0)),
                     ' ');
}

}  // namespace

std::string left(std::string_view text, index columns) {
  return std::string(text) + padding(text, columns);
}

std::string right(std::string_view text, index columns) {
  return padding(text, columns) + std::string(text);
}

std::string four_digits(double number) {
  return std::isnan(number) ? "undefined" : fmt::format("{:.4f}", number);
}

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
