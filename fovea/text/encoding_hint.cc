// SPDX-License-Identifier: Apache-2.0
// Guesses the encoding of text that is not UTF-8, for a hint, from its first megabyte.
#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/text/no_nul.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

using Byte = unsigned char;

constexpr std::size_t kSample = std::size_t{1} << 20;
constexpr std::string_view kBinary = "this looks like a binary file; name a text file in UTF-8";
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
  return fmt::format("{} {}", kBinary, kAnyBytes);
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
    const DecodedCharacter c = decode_character(text);
    if (c.status == Utf8Status::kValid) {
      good += c.length > 1 ? 1 : 0;
    } else {
      ++bad;
    }
    text.remove_prefix(static_cast<std::size_t>(c.length));
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
  if (has_many_controls(text)) return fmt::format("{} {}", kBinary, kAnyBytes);
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
