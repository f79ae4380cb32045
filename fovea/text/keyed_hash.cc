// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/keyed_hash.h"

#define XXH_INLINE_ALL  // header only: fovea and its users link no library for it
#include <xxhash.h>

#include <array>
#include <random>

namespace fovea {

namespace {

using Secret = std::array<unsigned, 48>;  // 192 bytes, as XXH3's own one
static_assert(sizeof(Secret) >= XXH3_SECRET_SIZE_MIN);

Secret draw_secret() {
  std::random_device device;
  Secret secret{};
  for (unsigned& word : secret) word = device();
  return secret;
}

}  // namespace

std::uint64_t keyed_hash(std::string_view bytes) {
  static const Secret secret = draw_secret();
  return XXH3_64bits_withSecret(bytes.data(), bytes.size(), secret.data(), sizeof(secret));
}

}  // namespace fovea
