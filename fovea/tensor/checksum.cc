// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/checksum.h"

#define XXH_INLINE_ALL  // header only: fovea and its users link no library for it
#include <fmt/core.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

namespace fovea {

std::string xxh3_128_of(const std::function<std::string_view()>& next) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (std::string_view piece = next(); !piece.empty(); piece = next()) {
    XXH3_128bits_update(&state, piece.data(), piece.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string xxh3_128(std::initializer_list<std::string_view> pieces) {
  return xxh3_128({}, {pieces.begin(), pieces.size()});
}

std::string xxh3_128(std::string_view first, std::span<const std::string_view> pieces) {
  auto next = pieces.begin();
  bool began = false;
  return xxh3_128_of([&] {
    if (!std::exchange(began, true) && !first.empty()) return first;
    while (next != pieces.end() && next->empty()) ++next;
    return next == pieces.end() ? std::string_view() : *next++;
  });
}

std::string xxh3_128_of(const ByteSource& file) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::string room;
  std::uint64_t at = 0;
  return xxh3_128_of([&] {
    const std::uint64_t begin = at;
    at = std::min(file.size(), begin + kPiece);
    return file.view(begin, static_cast<std::size_t>(at - begin), room);
  });
}

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace fovea
