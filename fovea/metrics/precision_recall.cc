// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/precision_recall.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/check.h"

namespace fovea {

std::vector<PrecisionRecallPoint> precision_recall_curve(std::span<const float> probabilities,
                                                         std::span<const std::uint8_t> truth,
                                                         index most) {
  check(probabilities.size() == truth.size(), "precision_recall_curve: {} probabilities of {}",
        probabilities.size(), truth.size());
  std::vector<std::size_t> order(truth.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  const double all = std::accumulate(truth.begin(), truth.end(), 0.0);
  std::vector<PrecisionRecallPoint> points;
  double hits = 0;
  for (std::size_t n = 0; n < order.size() && all > 0; ++n) {
    hits += truth[order[n]];
    const bool is_last = n + 1 == order.size();
    if (!is_last && probabilities[order[n + 1]] == probabilities[order[n]]) continue;
    const PrecisionRecallPoint here{hits / all, hits / static_cast<double>(n + 1),
                                    double{probabilities[order[n]]}};
    // Recall in steps: the first point of each.
    const auto step = [&](double recall) { return std::floor(recall * static_cast<double>(most)); };
    const bool is_new = points.empty() || step(here.recall) > step(points.back().recall);
    if (is_new) points.push_back(here);
    // Behind the last hit precision only falls.
    if (hits == all) {
      if (!is_new) points.push_back(here);
      break;
    }
  }
  return points;
}

}  // namespace fovea
