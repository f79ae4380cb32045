// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/token_text.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>

#include "fovea/report/terminal.h"

namespace fovea {

namespace {

// Whatever stands beside them.
bool is_hidden(utf8proc_int32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || c == 0x115F ||
         c == 0x1160 || c == 0x180E || c == 0x200B || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0x2800 ||
         c == 0x3164 || c == 0xFEFF || c == 0xFFA0 || (c >= 0xE0000 && c <= 0xE007F);
}

// Joiners of letters and emoji, and variation selectors: what they change stands before them.
bool is_joiner(utf8proc_int32_t c) {
  return c == 0x200C || c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F) ||
         (c >= 0xE0100 && c <= 0xE01EF);
}

bool is_mark(utf8proc_int32_t c) {
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

bool is_space(utf8proc_int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_ZS; }

std::string_view sign_of(utf8proc_int32_t c) {
  switch (c) {
    case '\n':
      return "\u21B5";
    case '\r':
      return "\u240D";
    case '\t':
      return "\u21E5";
    case ' ':
      return "\u2423";
    default:
      return {};
  }
}

std::string name_of(utf8proc_int32_t c) {
  const std::string_view sign = sign_of(c);
  return sign.empty() ? fmt::format("[U+{:04X}]", c) : std::string(sign);
}

// Calls f(position, character, bytes) for each; of bytes that are not UTF-8, character is -1.
template <class F>
void for_each_character(std::string_view token, F&& f) {
  for (std::size_t at = 0; at < token.size();) {
    utf8proc_int32_t c = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(token.data() + at),
                                    static_cast<utf8proc_ssize_t>(token.size() - at), &c);
    const auto bytes = n > 0 ? static_cast<std::size_t>(n) : 1;
    f(at, n > 0 ? c : -1, token.substr(at, bytes));
    at += bytes;
  }
}

}  // namespace

bool is_all_spaces(std::string_view token) {
  bool blank = true;
  for_each_character(token, [&](std::size_t, utf8proc_int32_t c, std::string_view) {
    blank = blank && c >= 0 && is_space(c);
  });
  return blank;
}

std::string visible(std::string_view token) {
  if (token.empty()) return "\u2205";
  std::size_t first = token.size(), last = 0;  // that is no space
  for_each_character(token, [&](std::size_t at, utf8proc_int32_t c, std::string_view) {
    if (c >= 0 && is_space(c)) return;
    first = std::min(first, at);
    last = at;
  });
  std::string out;
  bool has_base = false;  // to which a joiner or a mark could belong
  for_each_character(token, [&](std::size_t at, utf8proc_int32_t c, std::string_view bytes) {
    if (c < 0) {
      out += "\uFFFD";
      return;
    }
    const bool is_end = at < first || at > last;
    if (is_hidden(c) || (is_joiner(c) && !has_base) || (is_end && is_space(c))) {
      out += name_of(c);
      return;
    }
    if (is_mark(c) && !has_base) out += "\u25CC";
    out += bytes;
    has_base = true;
  });
  return out;
}

std::string short_token(std::string_view token) {
  return fit_columns(visible(token), kLongestToken);
}

}  // namespace fovea
