// SPDX-License-Identifier: Apache-2.0
// The tables that are printed: their columns, and the classes that are confused.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fovea/base/types.h"
#include "fovea/metrics/classification.h"

namespace fovea::cli {

/// The text and spaces behind it, or before it, up to `columns` of the terminal.
std::string left(std::string_view text, index columns);
std::string right(std::string_view text, index columns);

/// "0.1235"; "undefined" for NaN.
std::string four_digits(double number);

/// The twenty pairs of classes that are confused most often, a line each: how often, and "A taken
/// for B", with what `name` calls a class.
std::string confused_pairs(const ConfusionMatrix& matrix,
                           const std::function<std::string(index)>& name);

}  // namespace fovea::cli
