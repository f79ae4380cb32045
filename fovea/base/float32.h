// SPDX-License-Identifier: Apache-2.0
// Numbers from outside that are to be float32.
#pragma once

#include <string>

namespace fovea {

/// Whether the number is finite, also as a float32.
bool is_finite_float32(double number);

/// The words of a message for a number that is not finite as a float32: "NaN", "infinity" or
/// "1e+39, too large for float32".
std::string why_not_float32(double number);

}  // namespace fovea
