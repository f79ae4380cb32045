// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/random.h"

#include <cmath>
#include <numbers>

#include "fovea/base/check.h"

namespace fovea {

PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

PhiloxKey philox_key(const DropoutKey& key) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const PhiloxCounter name{low(key.step), high(key.step), key.layer,
                           static_cast<std::uint32_t>(RandomUse::kDropout)};
  const PhiloxCounter words = philox4x32(name, {low(key.seed), high(key.seed)});
  return {words[0], words[1]};
}

// counter[0] counts draws; the rest names the stream.
Random::Random(std::uint64_t seed, RandomUse use, std::uint64_t number)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, static_cast<std::uint32_t>(use), static_cast<std::uint32_t>(number),
               static_cast<std::uint32_t>(number >> 32)} {}

std::uint32_t Random::next_u32() {
  if (left_ == 0) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    left_ = 4;
  }
  return block_[static_cast<std::size_t>(4 - left_--)];
}

std::uint64_t Random::next_u64() {
  const std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

index Random::below(index n) {
  check(n >= 1, "Random::below: n must be at least 1; it is {}", n);
  const auto range = static_cast<std::uint64_t>(n);
  // The last value of the largest multiple of `range`: draws above it would make small results more
  // likely.
  const std::uint64_t limit = UINT64_MAX - (UINT64_MAX % range + 1) % range;
  std::uint64_t draw = next_u64();
  while (draw > limit) draw = next_u64();
  return static_cast<index>(draw % range);
}

double Random::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace fovea
