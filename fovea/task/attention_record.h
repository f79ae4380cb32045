// SPDX-License-Identifier: Apache-2.0
// The record of the attention of an update.
#pragma once

#include <span>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/train/history.h"

namespace fovea {

/// The statistics of each attention; the step is not set.
inline AttentionRecord record_of(std::span<const HeadStatistics> attentions) {
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

}  // namespace fovea
