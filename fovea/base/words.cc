// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/words.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fovea {

bool has_word(std::string_view list, char separator, std::string_view word) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    if (list.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<std::string_view> parts_between(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_./,:=+@%-").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\"'\"'") : std::string(1, c);
  return quoted + "'";
}

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

namespace {

constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

int decimals(double value) { return std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0; }

}  // namespace

std::string size_text(double bytes) {
  // A value that would round to 1024 is written as 1 of the next unit.
  constexpr double kNextUnit = 1023.5;
  if (!(std::abs(bytes) >= kNextUnit)) return fmt::format("{:.0f} B", bytes);
  double value = bytes / 1024;
  std::size_t unit = 0;
  for (; std::abs(value) >= kNextUnit && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, decimals(value), kUnits[unit]);
}

bool is_finite_float32(double number) { return std::isfinite(static_cast<float>(number)); }

std::string why_not_float32(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return "infinity";
  return fmt::format("{}, too large for float32", number);
}

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
