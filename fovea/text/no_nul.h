// SPDX-License-Identifier: Apache-2.0
// NUL is valid UTF-8, but no text.
#pragma once

#include <string_view>

namespace fovea {

/// The hint for a NUL in a file that looks like text otherwise.
inline constexpr std::string_view kRemoveNuls = "remove the NUL bytes: tr -d '\\0'";

/// Throws kEncoding, "NAME:LINE:COLUMN: expected text, got a NUL byte" with a hint, if there is
/// one.
void require_no_nul(std::string_view text, std::string_view name);

}  // namespace fovea
