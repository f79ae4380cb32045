// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/pre_split.h"

#include <algorithm>
#include <array>

#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr PreSplit llama3(std::string_view name) {
  return {.name = name,
          .pattern = SplitPattern::kCl100k,
          .digits = 3,
          .begins = true,
          .ignore_merges = true};
}

constexpr PreSplit kPreSplits[] = {
    {.name = "gpt-2"},
    {.name = "smollm", .digits_apart = true},
    {.name = "starcoder", .digits_apart = true},
    {.name = "refact", .digits_apart = true},
    llama3("llama-bpe"),
    llama3("llama3"),
    llama3("llama-v3"),
    {.name = "qwen2", .pattern = SplitPattern::kCl100k, .digits = 1},
};

enum class Class : std::uint8_t { kEnd, kLetter, kNumber, kSpace, kNewline, kOther };

struct Character {
  Class kind = Class::kEnd;
  std::size_t bytes = 0;
};

Class class_of(char32_t c) {
  if (c == U'\n' || c == U'\r') return Class::kNewline;
  if (is_letter(c)) return Class::kLetter;
  if (is_number(c)) return Class::kNumber;
  return is_white_space(c) ? Class::kSpace : Class::kOther;
}

constexpr std::size_t kAscii = 128;

std::array<Class, kAscii> ascii_classes() {
  std::array<Class, kAscii> classes;
  for (std::size_t c = 0; c < kAscii; ++c) classes[c] = class_of(static_cast<char32_t>(c));
  return classes;
}

// A text of which characters are asked; where `ends_at_number`, a number is the end of it.
struct Scanned {
  std::string_view text;
  bool ends_at_number = false;

  // The character at a place; kEnd behind the last.
  Character at(std::size_t place) const {
    static const std::array<Class, kAscii> ascii = ascii_classes();
    if (place >= text.size()) return {};
    const auto first = static_cast<unsigned char>(text[place]);
    Character c{Class::kEnd, 1};
    if (first < kAscii) {
      c.kind = ascii[first];
    } else {
      const DecodedCharacter decoded = decode_character(text.substr(place));
      c = {class_of(decoded.value), static_cast<std::size_t>(decoded.length)};
    }
    return ends_at_number && c.kind == Class::kNumber ? Character{} : c;
  }

  // The end of the run of one class from `place` on, of at most `most` characters.
  std::size_t run(std::size_t place, Class kind, int most = 0) const {
    for (int n = 0; most == 0 || n < most; ++n) {
      const Character c = at(place);
      if (c.kind != kind) break;
      place += c.bytes;
    }
    return place;
  }
};

bool is_space(Class kind) { return kind == Class::kSpace || kind == Class::kNewline; }

enum class Letters { kAsWritten, kAnyCase };

// Bytes of 's, 't, 're, 've, 'm, 'll or 'd at the front of a text; 0: there is none.
std::size_t contraction(std::string_view text, Letters letters) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  // The long s is another case of s.
  if (letters == Letters::kAnyCase && text.substr(1).starts_with("\u017F")) return 3;
  const auto letter = [&](std::size_t n) {
    const char c = n < text.size() ? text[n] : '\0';
    return letters == Letters::kAnyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a')
                                                                : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

// The end of a part that is white space, which begins the text: of \s+(?!\S)|\s+.
std::size_t space_part(const Scanned& text) {
  std::size_t end = 0, last = 0;
  Character c = text.at(0);
  for (; is_space(c.kind); c = text.at(end)) {
    last = end;
    end += c.bytes;
  }
  return c.kind == Class::kEnd || last == 0 ? end : last;
}

// The end of \s*[\r\n]+ at the front of a text; 0: there is none.
std::size_t newline_part(const Scanned& text) {
  std::size_t end = 0, found = 0;
  for (Character c = text.at(0); is_space(c.kind); c = text.at(end)) {
    end += c.bytes;
    if (c.kind == Class::kNewline) found = end;
  }
  return found;
}

std::size_t gpt2_part(const Scanned& text) {
  if (const std::size_t length = contraction(text.text, Letters::kAsWritten)) return length;
  const std::size_t begin = text.text[0] == ' ' ? 1 : 0;
  const Class kind = text.at(begin).kind;
  if (kind == Class::kEnd || is_space(kind)) return space_part(text);
  return text.run(begin, kind);
}

std::size_t cl100k_part(const Scanned& text, int digits) {
  if (const std::size_t length = contraction(text.text, Letters::kAnyCase)) return length;
  const Character first = text.at(0);
  if (first.kind == Class::kLetter) return text.run(0, Class::kLetter);
  if ((first.kind == Class::kSpace || first.kind == Class::kOther) &&
      text.at(first.bytes).kind == Class::kLetter) {
    return text.run(first.bytes, Class::kLetter);
  }
  if (first.kind == Class::kNumber) return text.run(0, Class::kNumber, digits);
  const std::size_t begin = text.text[0] == ' ' ? 1 : 0;
  if (text.at(begin).kind == Class::kOther) {
    return text.run(text.run(begin, Class::kOther), Class::kNewline);
  }
  const std::size_t length = newline_part(text);
  return length > 0 ? length : space_part(text);
}

std::size_t part_length(std::string_view text, const PreSplit& split) {
  if (split.pattern == SplitPattern::kNone) return text.size();
  const Scanned whole{text};
  if (split.pattern == SplitPattern::kCl100k) return cl100k_part(whole, split.digits);
  if (!split.digits_apart) return gpt2_part(whole);
  const Character first = whole.at(0);
  return first.kind == Class::kNumber ? first.bytes : gpt2_part({text, true});
}

}  // namespace

std::span<const PreSplit> pre_splits() { return kPreSplits; }

std::string_view take_part(std::string_view& text, const PreSplit& split) {
  const std::string_view part = text.substr(0, part_length(text, split));
  text.remove_prefix(part.size());
  return part;
}

}  // namespace fovea
