// SPDX-License-Identifier: Apache-2.0
// The checks that every metric makes of its input. `what`, the metric's name, begins the message.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/base/view.h"

namespace fovea::detail {

/// Throws Error(kShape) unless there are examples, and as many of both.
void check_lengths(std::string_view what, index truth, index predicted);

/// Throws Error(kShape) unless every label is in [0, classes).
void check_labels(std::string_view what, std::string_view name, Vec<const std::int32_t> labels,
                  index classes);

/// Throws Error(kOptionValue) unless every flag is 0 or 1. `name` and a number name one of them:
/// "the true label of example" 7.
void check_flags(std::string_view what, std::string_view name, Vec<const std::uint8_t> flags);

/// The values in double. Throws Error(kOptionValue) unless they are finite.
template <class T>
std::vector<double> finite_values(std::string_view what, Vec<const T> values);

/// Probabilities in double. Throws Error(kOptionValue) unless they are in [0, 1].
template <class T>
std::vector<double> probabilities_of(std::string_view what, Vec<const T> values);

/// The distributions [N, K] in double, row after row. Throws Error(kOptionValue) unless all numbers
/// are in [0, 1] and those of a row add up to 1, with an error of at most .001.
template <class T>
std::vector<double> distributions_of(std::string_view what, Rows<const T> rows);

}  // namespace fovea::detail
