// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/printable.h"

#include <fmt/core.h>

namespace fovea {

std::string printable(std::string_view name) {
  constexpr std::size_t kLongest = 60;
  std::string text = "'";
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return text + (name.size() > kLongest ? "...'" : "'");
}

}  // namespace fovea
