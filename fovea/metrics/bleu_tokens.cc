// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/bleu_tokens.h"

#include <algorithm>
#include <iterator>

#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// ASCII symbols and the space, but not ' , - . and digits or letters.
bool is_symbol(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string around_symbols(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_symbol(c)) {
      out.append({' ', c, ' '});
    } else {
      out += c;
    }
  }
  return out;
}

// Rewrites each pair of characters that `matches`, left to right; the next pair begins behind it.
// Bytes will do: all that is looked for is ASCII or its absence.
template <class Matches, class Write>
std::string rewrite_pairs(std::string_view text, Matches&& matches, Write&& write) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      write(out, text[i], text[i + 1]);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The four rules that 13a and zh share, one after another.
std::string western_tokens(std::string_view sentence) {
  std::string text = around_symbols(sentence);
  const auto space_behind_both = [](std::string& out, char a, char b) {
    out.append({a, ' ', b, ' '});
  };
  const auto space_before_both = [](std::string& out, char a, char b) {
    out.append({' ', a, ' ', b});
  };
  text = rewrite_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_point(b); }, space_behind_both);
  text = rewrite_pairs(
      text, [](char a, char b) { return is_point(a) && !is_digit(b); }, space_before_both);
  return rewrite_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, space_behind_both);
}

std::string tokens_13a(std::string_view sentence) {
  std::string text(sentence);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  return western_tokens(" " + text + " ");
}

struct Range {
  char32_t first, last;
};

// The characters that sacreBLEU takes for Chinese. Its range of U+20000 to U+2A6D6 is written with
// five digits behind \u, which Python reads as four and a digit: it goes from U+2001 to U+2A6D.
constexpr Range kChinese[] = {
    {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3000, 0x303F},
    {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF}, {0x3400, 0x4DB5},
    {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F},
    {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};

bool is_chinese(char32_t c) {
  return std::any_of(std::begin(kChinese), std::end(kChinese),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
}

// The characters that are `alone` get a space on both sides.
template <class Alone>
std::string spaced(std::string_view text, Alone&& alone) {
  std::string out;
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    const std::string_view bytes = text.substr(0, static_cast<std::size_t>(c.length));
    const std::string_view space = alone(c.value) ? " " : "";
    out.append(space).append(bytes).append(space);
    text.remove_prefix(bytes.size());
  }
  return out;
}

}  // namespace

std::string bleu_tokens(std::string_view sentence, BleuTokens kind) {
  const std::string_view text = strip_end(sentence);
  switch (kind) {
    case BleuTokens::k13a:
      return tokens_13a(text);
    case BleuTokens::kZh:
      return western_tokens(spaced(strip_both(text), is_chinese));
    case BleuTokens::kChar:
      return spaced(text, [](char32_t) { return true; });
    case BleuTokens::kNone:
      break;
  }
  return std::string(text);
}

}  // namespace fovea
