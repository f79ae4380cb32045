// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/token_text.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include "fovea/report/terminal.h"

namespace fovea {

namespace {

// U+200C and U+200D, which join letters and emoji, and variation selectors stay as they are.
bool is_hidden(utf8proc_int32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || c == 0x200B ||
         c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
}

std::string_view sign_of(utf8proc_int32_t c) {
  switch (c) {
    case '\n':
      return "\u21B5";
    case '\r':
      return "\u240D";
    case '\t':
      return "\u21E5";
    default:
      return {};
  }
}

}  // namespace

std::string visible(std::string_view token) {
  if (token.empty()) return "\u2205";
  std::string out;
  const std::size_t first = token.find_first_not_of(' '), last = token.find_last_not_of(' ');
  for (std::size_t at = 0; at < token.size();) {
    utf8proc_int32_t c = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(token.data() + at),
                                    static_cast<utf8proc_ssize_t>(token.size() - at), &c);
    const auto bytes = n > 0 ? static_cast<std::size_t>(n) : 1;
    if (n <= 0) {
      out += "\uFFFD";
    } else if (c == ' ' && (first == std::string_view::npos || at < first || at > last)) {
      out += "\u2423";
    } else if (!sign_of(c).empty()) {
      out += sign_of(c);
    } else if (is_hidden(c)) {
      out += fmt::format("[U+{:04X}]", c);
    } else {
      out += token.substr(at, bytes);
    }
    at += bytes;
  }
  return out;
}

std::string short_token(std::string_view token) {
  return fit_columns(visible(token), kLongestToken);
}

}  // namespace fovea
