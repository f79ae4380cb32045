// SPDX-License-Identifier: Apache-2.0
// Words that somebody has chosen so that a table of them is as slow as a list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

/// Words of 24 letters, digits and signs that have the same std::hash in libstdc++, which is
/// MurmurHash64A with a known seed: of two blocks of eight bytes follows the third.
inline std::vector<std::string> words_of_one_hash(std::size_t count) {
  constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995, kInverse = 0x5f7a0ea7e59b19bd;
  static_assert(kFactor * kInverse == 1);
  const auto shift = [](std::uint64_t value) { return value ^ value >> 47; };  // undoes itself
  const auto mix = [&](std::uint64_t hash, std::uint64_t block) {
    return (hash ^ shift(block * kFactor) * kFactor) * kFactor;
  };
  const auto is_sign = [](char c) { return c > ' ' && c < '\x7F'; };
  constexpr std::uint64_t kLetters = 0x6161616161616161;  // "aaaaaaaa"
  const std::uint64_t first = mix(0xc70f6907 ^ 24 * kFactor, kLetters);
  std::vector<std::string> words;
  for (std::uint64_t number = 0; words.size() < count; ++number) {
    std::uint64_t letters = kLetters;  // a hexadecimal digit each
    for (int n = 0; n < 8; ++n) letters += (number >> 4 * n & 15) << 8 * n;
    const std::uint64_t wanted = mix(first, letters) ^ 0x0123456789abcdef;
    const std::uint64_t blocks[] = {kLetters, letters, shift(wanted * kInverse) * kInverse};
    std::string word(sizeof(blocks), ' ');
    std::memcpy(word.data(), blocks, sizeof(blocks));
    if (std::all_of(word.begin() + 16, word.end(), is_sign)) words.push_back(std::move(word));
  }
  return words;
}

/// As many ordinary words of that length.
inline std::vector<std::string> ordinary_words(std::size_t count) {
  std::vector<std::string> words;
  for (std::size_t n = 0; n < count; ++n) {
    words.push_back(std::to_string(n));
    words.back().resize(24, 'x');
  }
  return words;
}

}  // namespace fovea
