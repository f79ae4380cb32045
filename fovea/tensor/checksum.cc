// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/checksum.h"

#define XXH_INLINE_ALL  // header only: nothing to link, for us and for who links us
#include <fmt/core.h>
#include <xxhash.h>
#include <zlib.h>

namespace fovea {

std::string xxh3_128(std::initializer_list<std::string_view> pieces) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const std::string_view piece : pieces) {
    XXH3_128bits_update(&state, piece.data(), piece.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::uint32_t crc32(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace fovea
