// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/base64.h"

#include <algorithm>
#include <cstdint>

namespace fovea {

namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kBytes = 3, kCharacters = 4;

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + kBytes - 1) / kBytes * kCharacters);
  for (std::size_t at = 0; at < bytes.size(); at += kBytes) {
    const std::string_view group = bytes.substr(at, kBytes);
    std::uint32_t bits = 0;
    for (std::size_t n = 0; n < kBytes; ++n) {
      bits = bits << 8 | (n < group.size() ? static_cast<unsigned char>(group[n]) : 0u);
    }
    for (std::size_t n = 0; n < kCharacters; ++n) {
      text += n <= group.size() ? kDigits[bits >> (18 - 6 * n) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  std::string bytes;
  const std::size_t digits = std::min(text.find('='), text.size());
  std::uint32_t bits = 0;
  for (std::size_t n = 0; n < digits; ++n) {
    const std::size_t digit = kDigits.find(text[n]);
    if (digit == kDigits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    const std::size_t held = 6 * (n % kCharacters + 1) % 8;  // bits behind the last whole byte
    if (n % kCharacters > 0) bytes += static_cast<char>(bits >> held & 255);
  }
  // Other spellings of the same bytes are refused.
  if (base64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace fovea
