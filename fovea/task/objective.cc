// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/objective.h"

#include <algorithm>

namespace fovea {

AttentionRecord record_of(std::span<const HeadStatistics> attentions) {
  const auto means = [](std::vector<double> sums, index count) {
    for (double& value : sums) value /= static_cast<double>(count);
    return sums;
  };
  AttentionRecord record;
  for (const HeadStatistics& layer : attentions) {
    record.max_logit.push_back(layer.max_logit);
    if (layer.entropy.empty()) continue;
    record.entropy.push_back(means(layer.entropy, layer.queries));
    record.distance.push_back(means(layer.distance, layer.queries));
  }
  return record;
}

double score_with_tie(double score, double loss) {
  constexpr double kTie = 1e-9, kMostLoss = 1e3;
  return score - kTie * std::min(loss, kMostLoss);
}

}  // namespace fovea
