// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "fovea/grad/tape.h"

namespace fovea {

/// What is taken of a tape's one block: its size, but for what still fits.
inline double bytes_used(Tape& tape) {
  constexpr index kStep = 1024;
  const std::size_t size = tape.capacity();
  index left = -kStep;
  while (tape.capacity() == size) {
    tape.saved<std::byte>(kStep);
    left += kStep;
  }
  return static_cast<double>(size) - static_cast<double>(left);
}

}  // namespace fovea
