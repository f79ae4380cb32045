// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/utf8.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/error.h"

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

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    append_utf8(valid, c.value);
  }
  return valid;
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

bool is_letter(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
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

std::string composed(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<Byte>(c) < 0x80; })) {
    return std::string(text);
  }
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  check(size >= 0, "normal form C of {} bytes: {}", text.size(), utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(made), static_cast<std::size_t>(size)};
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
    const TakenCharacter c = take_character(text);
    append_utf8(out, lower_character(c.value));
  }
}

std::string escape_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    if (c.status != Utf8Status::kValid) {
      for (const char byte : c.bytes) out += fmt::format("\\x{:02X}", static_cast<Byte>(byte));
    } else if (c.value == U'\n') {
      out += "\\n";
    } else if (c.value == U'\r') {
      out += "\\r";
    } else if (c.value == U'\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out += c.bytes;
    } else {
      out += fmt::format("\\u{{{:X}}}", static_cast<std::uint32_t>(c.value));
    }
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

void require_no_nul(std::string_view text, std::string_view name) {
  const std::size_t at = text.find('\0');
  if (at == std::string_view::npos) return;
  const std::string_view before = text.substr(0, at);
  const std::size_t end = before.rfind('\n');
  const std::size_t begin = end == std::string_view::npos ? 0 : end + 1;
  throw Error(ErrorCode::kEncoding,
              fmt::format("{}:{}:{}: expected text, got a NUL byte", name,
                          1 + std::count(before.begin(), before.end(), '\n'),
                          1 + count_characters(before.substr(begin))),
              looks_binary(text) ? encoding_hint(text) : std::string(kRemoveNuls));
}

// Guesses the encoding of text that is not UTF-8, for a hint, from its first megabyte.

namespace {

using Byte = unsigned char;

constexpr std::size_t kSample = std::size_t{1} << 20;
constexpr std::string_view kBinary =
    "this looks like a binary file; name a text file in UTF-8 (language models and classifiers "
    "with the byte tokenizer keep any bytes)";
// A remark on which tasks take any bytes, for every command.
constexpr std::string_view kAnyBytes =
    "(language models and classifiers with the byte tokenizer keep any bytes)";

std::string convert_from(std::string_view encoding) {
  return fmt::format("this looks like {0}; convert it with: iconv -f {0} -t UTF-8 FILE > NEW",
                     encoding);
}

// The hint for a file that another program has packed; empty if it is none. Files that open_text
// unpacks never come here.
std::string packed_hint(std::string_view text) {
  using namespace std::string_view_literals;
  constexpr std::pair<std::string_view, std::string_view> kPackers[] = {
      {"\xFD"
       "7zXZ\0"sv,
       "xz"},
      {"BZh"sv, "bzip2"},
      {"\x04\"M\x18"sv, "lz4"},
      {"PK\x03\x04"sv, "zip"},
  };
  for (const auto& [magic, name] : kPackers) {
    if (!text.starts_with(magic)) continue;
    return fmt::format(
        "this looks like a file packed with {}: unpack it, or pack the text with gzip or zstd, "
        "which are read as they are",
        name);
  }
  return {};
}

bool is_between(char c, Byte low, Byte high) {
  return static_cast<Byte>(c) >= low && static_cast<Byte>(c) <= high;
}

bool is_ascii(char c) { return is_between(c, 0x00, 0x7F); }

bool is_text_control(char c) { return c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

// UTF-16 of mostly Latin text has its NULs at even offsets only, or at odd offsets only. One or two
// are no evidence.
std::string nul_hint(std::string_view text) {
  index nuls[2] = {0, 0};
  for (std::size_t i = 0; i < text.size(); ++i) nuls[i % 2] += text[i] == '\0' ? 1 : 0;
  if (nuls[0] + nuls[1] < 3) return std::string(kRemoveNuls);
  if (nuls[1] > 9 * nuls[0]) return convert_from("UTF-16LE");
  if (nuls[0] > 9 * nuls[1]) return convert_from("UTF-16BE");
  return std::string(kBinary);
}

bool has_many_controls(std::string_view text) {
  const auto controls = std::count_if(text.begin(), text.end(), [](char c) {
    return is_between(c, 0x00, 0x1F) && !is_text_control(c);
  });
  return controls * 50 > static_cast<std::ptrdiff_t>(text.size());
}

// In text of another encoding, a valid UTF-8 character of several bytes is rare.
bool is_mostly_utf8(std::string_view text) {
  index good = 0;
  index bad = 0;
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    if (c.status == Utf8Status::kValid) {
      good += c.bytes.size() > 1 ? 1 : 0;
    } else {
      ++bad;
    }
  }
  return good > 3 * bad || bad == 0;
}

// Every byte belongs to a GB18030 character, and at least four of five two-byte characters lie in
// the GB2312 range, which holds the common Chinese characters.
bool is_gb18030(std::string_view text) {
  index common = 0;
  index pairs = 0;
  std::size_t i = 0;
  while (i + 4 <= text.size()) {
    if (is_ascii(text[i])) {
      ++i;
    } else if (!is_between(text[i], 0x81, 0xFE)) {
      return false;
    } else if (is_between(text[i + 1], 0x30, 0x39)) {
      if (!is_between(text[i + 2], 0x81, 0xFE) || !is_between(text[i + 3], 0x30, 0x39))
        return false;
      i += 4;
    } else {
      if (!is_between(text[i + 1], 0x40, 0xFE) || text[i + 1] == 0x7F) return false;
      ++pairs;
      common += is_between(text[i], 0xA1, 0xF7) && is_between(text[i + 1], 0xA1, 0xFE) ? 1 : 0;
      i += 2;
    }
  }
  return pairs > 0 && 5 * common >= 4 * pairs;
}

// In Latin scripts, accented letters stand alone between ASCII. One or two such bytes are no
// evidence.
bool is_windows_1252(std::string_view text) {
  index alone = 0;
  index high = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_ascii(text[i])) continue;
    ++high;
    const bool before = i == 0 || is_ascii(text[i - 1]);
    const bool after = i + 1 == text.size() || is_ascii(text[i + 1]);
    alone += before && after ? 1 : 0;
  }
  return high > 2 && 10 * alone >= 9 * high;
}

}  // namespace

bool looks_binary(std::string_view text) {
  return !text.empty() && std::count(text.begin(), text.end(), '\0') * 10 >=
                              static_cast<std::ptrdiff_t>(text.size());
}

std::string encoding_hint(std::string_view text) {
  using namespace std::string_view_literals;
  text = text.substr(0, kSample);
  if (const std::string hint = packed_hint(text); !hint.empty()) return hint;
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv)) {
    return convert_from("UTF-32");
  }
  if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv))
    return convert_from("UTF-16");
  if (looks_binary(text)) return nul_hint(text);
  if (has_many_controls(text)) return std::string(kBinary);
  if (is_mostly_utf8(text)) {
    return fmt::format("most of the text is UTF-8: correct or remove the damaged bytes {}",
                       kAnyBytes);
  }
  if (is_gb18030(text)) return convert_from("GB18030");
  if (is_windows_1252(text)) return convert_from("WINDOWS-1252");
  return fmt::format("convert the file to UTF-8: iconv -f ENCODING -t UTF-8 FILE > NEW {}",
                     kAnyBytes);
}

}  // namespace fovea
