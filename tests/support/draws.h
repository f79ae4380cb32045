// SPDX-License-Identifier: Apache-2.0
// The integers from which the examples of golden tests are made, in C++ as in Python.
#pragma once

#include <cstdint>

#include "fovea/base/types.h"

namespace fovea {

/// SplitMix64 (Steele, Lea, Flood 2014).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  index below(index n) {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<index>((z ^ (z >> 31)) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_;
};

}  // namespace fovea
