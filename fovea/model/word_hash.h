// SPDX-License-Identifier: Apache-2.0
// Ids as the row of a table. Models keep their rows, so this never changes.
#pragma once

#include <cstdint>

#include "fovea/base/types.h"

namespace fovea {

class WordHash {
 public:
  /// `kind`: which of the n-grams it is. Above the ids, so that (kind, id) and (kind + 1, id - 1)
  /// differ.
  explicit constexpr WordHash(std::uint32_t kind) : h_(std::uint64_t{kind} << 32) {}

  /// The id of a word, or -1 for what lies beyond an end.
  constexpr WordHash with(std::int32_t id) const {
    WordHash more = *this;
    more.h_ = (h_ + static_cast<std::uint64_t>(id + 2)) * 0x9E3779B97F4A7C15u;
    return more;
  }
  /// In 0 to rows - 1. Mixed as SplitMix64 ends (Steele et al. 2014).
  constexpr std::int32_t row(index rows) const {
    std::uint64_t x = h_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::int32_t>((x ^ (x >> 31)) % static_cast<std::uint64_t>(rows));
  }

 private:
  std::uint64_t h_;
};

}  // namespace fovea
