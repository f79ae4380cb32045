// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fovea/base/check.h"

namespace fovea {

namespace {

using Byte = unsigned char;

struct Lead {
  int length;      // of the whole character; 0: no character starts like this
  Byte low, high;  // range of the second byte
};

// Unicode 15, table 3-7: the range of the second byte excludes overlong forms, surrogates and what
// is too large.
constexpr Lead lead_of(Byte byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {3, byte == 0xE0 ? Byte{0xA0} : Byte{0x80}, byte == 0xED ? Byte{0x9F} : Byte{0xBF}};
  }
  if (byte < 0xF5) {
    return {4, byte == 0xF0 ? Byte{0x90} : Byte{0x80}, byte == 0xF4 ? Byte{0x8F} : Byte{0xBF}};
  }
  return {0, 0, 0};
}

constexpr bool continues_character(char c) { return (static_cast<Byte>(c) & 0xC0) == 0x80; }

// Length of the run of ASCII at the start of the text, in whole words of 8 bytes.
std::size_t ascii_words(std::string_view text) {
  std::size_t n = 0;
  for (; n + 8 <= text.size(); n += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + n, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return n;
}

std::string hex_bytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += fmt::format("{}0x{:02X}", out.empty() ? "" : " ", static_cast<Byte>(c));
  }
  return out;
}

InvalidUtf8 describe(std::string_view text, std::size_t at, const DecodedCharacter& bad) {
  const std::string_view before = text.substr(0, at);
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  const bool breaks_later =
      bad.status == Utf8Status::kInvalid && lead_of(static_cast<Byte>(text[at])).length > 0;
  const auto shown = static_cast<std::size_t>(bad.length) + (breaks_later ? 1 : 0);
  return {.byte = static_cast<index>(at),
          .line = 1 + std::count(before.begin(), before.end(), '\n'),
          .column = 1 + count_characters(before.substr(line_start)),
          .bytes = hex_bytes(text.substr(at, shown)),
          .status = bad.status};
}

// Characters that a terminal shows as they are, and that cannot reorder or hide the text around
// them.
bool is_printable(char32_t c) {
  if (c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F)) return true;  // they join parts of emoji
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

}  // namespace

DecodedCharacter decode_character(std::string_view text) {
  const auto byte = [&](int i) { return static_cast<Byte>(text[static_cast<std::size_t>(i)]); };
  if (byte(0) < 0x80) return {byte(0), 1, Utf8Status::kValid};
  const Lead lead = lead_of(byte(0));
  if (lead.length == 0) return {kReplacementCharacter, 1, Utf8Status::kInvalid};
  char32_t value = byte(0) & (0x7Fu >> lead.length);
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<std::size_t>(i) == text.size()) {
      return {kReplacementCharacter, i, Utf8Status::kIncomplete};
    }
    const Byte low = i == 1 ? lead.low : Byte{0x80};
    const Byte high = i == 1 ? lead.high : Byte{0xBF};
    if (byte(i) < low || byte(i) > high) return {kReplacementCharacter, i, Utf8Status::kInvalid};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  return {value, lead.length, Utf8Status::kValid};
}

void append_utf8(std::string& out, char32_t c) {
  if (!is_scalar_value(c)) c = kReplacementCharacter;
  const int length = utf8_length(c);
  if (length == 1) {
    out += static_cast<char>(c);
    return;
  }
  const unsigned marker = 0xF00u >> length & 0xFFu;  // as many leading ones as bytes
  out += static_cast<char>(marker | c >> (6 * (length - 1)));
  for (int i = length - 2; i >= 0; --i) out += static_cast<char>(0x80u | (c >> (6 * i) & 0x3Fu));
}

index count_characters(std::string_view text) {
  return static_cast<index>(text.size()) -
         std::count_if(text.begin(), text.end(), continues_character);
}

index character_offset(std::string_view text, index n) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!continues_character(text[i]) && n-- == 0) return static_cast<index>(i);
  }
  return static_cast<index>(text.size());
}

std::optional<InvalidUtf8> find_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    i += ascii_words(text.substr(i));
    // Decode a few characters one by one, then look for a run of ASCII again.
    for (int k = 0; k < 8 && i < text.size(); ++k) {
      const DecodedCharacter c = decode_character(text.substr(i));
      if (c.status != Utf8Status::kValid) return describe(text, i, c);
      i += static_cast<std::size_t>(c.length);
    }
  }
  return std::nullopt;
}

void require_utf8(std::string_view text, std::string_view name) {
  const auto invalid = find_invalid_utf8(text);
  if (!invalid) return;
  const std::string_view what =
      invalid->status == Utf8Status::kIncomplete ? "text ends inside a character" : "invalid UTF-8";
  throw Error(ErrorCode::kEncoding,
              fmt::format("{}:{}:{}: {} at byte {} ({})", name, invalid->line, invalid->column,
                          what, invalid->byte, invalid->bytes),
              encoding_hint(text));
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == U' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(char32_t c) {
  if (c < 0x80) {
    return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || (c >= U'0' && c <= U'9');
  }
  if (c == 0x200C || c == 0x200D) return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
}

bool is_grapheme_break(char32_t before, char32_t after, std::int32_t& state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                          static_cast<utf8proc_int32_t>(after), &state) != 0;
}

std::size_t white_space_at_front(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<Byte>(text.front());
  if (lead < 0x80) return is_white_space(lead) ? 1 : 0;
  // The bytes with which all other white space begins: most text is not decoded.
  if (lead != 0xC2 && (lead < 0xE1 || lead > 0xE3)) return 0;
  const DecodedCharacter c = decode_character(text);
  return is_white_space(c.value) ? static_cast<std::size_t>(c.length) : 0;
}

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    const std::size_t white = white_space_at_front(text);
    if (white == 0) return false;
    text.remove_prefix(white);
  }
  return true;
}

bool ends_with_white_space(std::string_view text) {
  std::size_t last = text.size();
  while (last > 0 && continues_character(text[last - 1])) --last;
  return last > 0 && white_space_at_front(text.substr(last - 1)) > 0;
}

char32_t lower_character(char32_t c) {
  if (c < 0x80) return c >= U'A' && c <= U'Z' ? c + 32 : c;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

std::string lower_text(std::string_view text) {
  std::string out;
  append_lower(out, text);
  return out;
}

void append_lower(std::string& out, std::string_view text) {
  const std::size_t before = out.size();
  out.resize(before + text.size());
  std::size_t n = 0;
  for (; n < text.size() && static_cast<Byte>(text[n]) < 0x80; ++n) {
    const bool capital = text[n] >= 'A' && text[n] <= 'Z';
    out[before + n] = static_cast<char>(text[n] + (capital ? 'a' - 'A' : 0));
  }
  out.resize(before + n);
  for (text.remove_prefix(n); !text.empty();) {
    const DecodedCharacter c = decode_character(text);
    append_utf8(out, lower_character(c.value));
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
}

std::string escape_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    const std::string_view bytes = text.substr(0, static_cast<std::size_t>(c.length));
    if (c.status != Utf8Status::kValid) {
      for (const char byte : bytes) out += fmt::format("\\x{:02X}", static_cast<Byte>(byte));
    } else if (c.value == U'\n') {
      out += "\\n";
    } else if (c.value == U'\r') {
      out += "\\r";
    } else if (c.value == U'\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out += bytes;
    } else {
      out += fmt::format("\\u{{{:X}}}", static_cast<std::uint32_t>(c.value));
    }
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string escape_lines(std::string_view text) {
  std::string out;
  const auto add_unit = [&](std::uint32_t unit) { out += fmt::format("\\u{:04X}", unit); };
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    const std::string_view bytes = text.substr(0, static_cast<std::size_t>(c.length));
    const auto value = static_cast<std::uint32_t>(c.value);
    if (c.status != Utf8Status::kValid) {
      out += escape_text(bytes);
    } else if (is_printable(c.value) || value == '\n' || value == '\t' ||
               text.starts_with("\r\n")) {
      out += bytes;
    } else if (value < 0x10000) {
      add_unit(value);
    } else {  // as UTF-16 has it
      add_unit(0xD800 + ((value - 0x10000) >> 10));
      add_unit(0xDC00 + (value & 0x3FF));
    }
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kCharacters = 60;
  std::size_t end = 0;
  for (std::size_t n = 0; n < kCharacters && end < text.size(); ++n) {
    end += static_cast<std::size_t>(decode_character(text.substr(end)).length);
  }
  return escape_text(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

}  // namespace fovea
