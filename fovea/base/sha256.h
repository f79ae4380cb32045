// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fovea {

/// SHA-256 (FIPS 180-4) of the bytes.
std::array<std::uint8_t, 32> sha256(std::string_view bytes);

}  // namespace fovea
