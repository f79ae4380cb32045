// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fovea {

/// The 128-bit XXH3 of the pieces, one after another, as 32 lower-case hexadecimal digits. It finds
/// every kind of damage (7 GB/s, so it is always on); it is no defence against a forger.
std::string xxh3_128(std::initializer_list<std::string_view> pieces);

inline std::string xxh3_128(std::string_view bytes) { return xxh3_128({bytes}); }

/// The same of pieces that need not be in memory together: next() gives each, and an empty one at
/// the end.
std::string xxh3_128_of(const std::function<std::string_view()>& next);

/// The CRC-32 of ZIP, gzip and PNG: what every language has at hand. `before` is that of the bytes
/// in front of these.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

}  // namespace fovea
