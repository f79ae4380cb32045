// SPDX-License-Identifier: Apache-2.0
// From scores to predicted labels.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

/// The class of the largest score of each row of scores [N, K]; of equal ones, the first. Throws
/// Error(kOptionValue) for NaN, Error(kShape) without classes. T: float, double.
template <class T>
std::vector<std::int32_t> most_likely_classes(Rows<const T> scores);

/// Which labels of probabilities [N, L] are predicted: 1 where p >= threshold, else 0; row after
/// row. Throws Error(kOptionValue) for NaN. T: float, double.
template <class T>
std::vector<std::uint8_t> labels_above(Rows<const T> probabilities, double threshold = 0.5);

}  // namespace fovea
