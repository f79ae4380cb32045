// SPDX-License-Identifier: Apache-2.0
// Columns of the tables that are printed.
#pragma once

#include <string>
#include <string_view>

#include "fovea/base/types.h"

namespace fovea::cli {

/// The text and spaces behind it, or before it, up to `columns` of the terminal.
std::string left(std::string_view text, index columns);
std::string right(std::string_view text, index columns);

/// "0.1235"; "undefined" for NaN.
std::string four_digits(double number);

}  // namespace fovea::cli
