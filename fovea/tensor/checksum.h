// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"

namespace fovea {

/// The 128-bit XXH3 of the pieces, one after another, as 32 lower-case hexadecimal digits. It
/// detects accidental damage of every kind, and at 7 GB/s it is cheap enough to be always on. It
/// does not protect against deliberate forgery.
std::string xxh3_128(std::initializer_list<std::string_view> pieces);

inline std::string xxh3_128(std::string_view bytes) { return xxh3_128({bytes}); }

/// The same of `first` and the pieces behind it.
std::string xxh3_128(std::string_view first, std::span<const std::string_view> pieces);

/// These values as bytes.
template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The checksum of pieces that need not be in memory together: next() returns each piece, then an
/// empty one at the end.
std::string xxh3_128_of(const std::function<std::string_view()>& next);

/// The checksum of a whole file, which is read piece by piece.
std::string xxh3_128_of(const ByteSource& file);

/// The CRC-32 of ZIP, gzip and PNG, which most languages offer. `before` is the CRC-32 of the bytes
/// in front of these.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

}  // namespace fovea
