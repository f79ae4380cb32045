// SPDX-License-Identifier: Apache-2.0
// What every fuzzer says of a reader: it returns, or throws fovea::Error; nothing else happens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fovea/base/error.h"

namespace fovea {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs read(), which may refuse its input.
template <class Read>
void allow_refusal(Read&& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fovea
