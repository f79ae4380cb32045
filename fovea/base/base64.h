// SPDX-License-Identifier: Apache-2.0
// Bytes as text (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fovea {

/// Four characters for three bytes; the last four are filled with '='.
std::string base64(std::string_view bytes);

/// The bytes of what base64 writes; nothing of any other text.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace fovea
