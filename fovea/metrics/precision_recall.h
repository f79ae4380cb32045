// SPDX-License-Identifier: Apache-2.0
// How precise predictions are at each recall.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// Of the examples whose probability is at least the threshold.
struct PrecisionRecallPoint {
  double recall, precision, threshold;
};

/// Points by ascending recall, one for each probability that occurs; of more than `most` so many,
/// at about even distances of recall, the last one among them. None without a positive example.
/// truth [N]: 1 for those that have the label.
std::vector<PrecisionRecallPoint> precision_recall_curve(std::span<const float> probabilities,
                                                         std::span<const std::uint8_t> truth,
                                                         index most = 100);

}  // namespace fovea
