// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/printable.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace fovea {

namespace {

// The bytes of the character of valid UTF-8 (RFC 3629) at the front, and what it is; 0 if none is.
std::size_t character_at_front(std::string_view text, std::uint32_t& value) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t size = first < 0x80                    ? 1
                           : first >= 0xc2 && first < 0xe0 ? 2
                           : first >= 0xe0 && first < 0xf0 ? 3
                           : first >= 0xf0 && first < 0xf5 ? 4
                                                           : 0;
  if (size == 0 || size > text.size()) return 0;
  value = size == 1 ? first : first & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  return overlong || surrogate || value > 0x10ffff ? 0 : size;
}

// Whether a terminal shows the character, and it changes nothing else there: no control or format
// characters (bidirectional ones, those without width, tags), no line ends, nothing private.
bool is_shown(std::uint32_t c) {
  struct Range {
    std::uint32_t first, last;
  };
  constexpr Range kHidden[] = {{0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},
                               {0x61c, 0x61c},   {0x180e, 0x180e},   {0x200b, 0x200f},
                               {0x2028, 0x202e}, {0x2060, 0x206f},   {0xe000, 0xf8ff},
                               {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},   {0xfff0, 0xfffb},
                               {0xfffe, 0xffff}, {0x1d173, 0x1d17a}, {0xe0000, 0x10ffff}};
  return std::none_of(std::begin(kHidden), std::end(kHidden),
                      [&](const Range& range) { return c >= range.first && c <= range.last; });
}

}  // namespace

std::string printable(std::string_view name) {
  constexpr std::size_t kLongest = 60;
  std::string text = "'";
  std::size_t at = 0;
  while (at < name.size()) {
    std::uint32_t value = 0;
    const std::size_t size = character_at_front(name.substr(at), value);
    const std::size_t taken = std::max<std::size_t>(size, 1);
    if (at + taken > kLongest) break;
    const std::string_view bytes = name.substr(at, taken);
    at += taken;
    if (size > 0 && is_shown(value)) {
      text += bytes;
      continue;
    }
    for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + (at < name.size() ? "...'" : "'");
}

}  // namespace fovea
