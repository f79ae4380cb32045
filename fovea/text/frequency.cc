// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/frequency.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "fovea/base/machine.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

struct Seen {
  index count = 0;
  std::size_t place = 0;  // among the distinct words
};

using SeenWords = KeyedMap<std::string, Seen>;

// The bytes of a distinct word: its node and bucket, and its place in the list that is made of
// them. While a table grows it has two sets of buckets.
constexpr double kWordBytes =
    sizeof(std::pair<const std::string, Seen>) + 48 + sizeof(CountedWord) + 2 * sizeof(void*);

// Asked each time that the number of words has doubled: a text of nothing but new words would take
// twenty times its size.
void require_memory_to_double(std::size_t words) {
  constexpr std::size_t kFew = std::size_t{1} << 16;
  if (words < kFew || (words & (words - 1)) != 0) return;
  require_memory("the words of the text", kWordBytes * static_cast<double>(words),
                 "use less text, or a machine with more memory");
}

std::vector<CountedWord> list_of(SeenWords seen) {
  std::vector<CountedWord> words(seen.size());
  while (!seen.empty()) {
    auto node = seen.extract(seen.begin());
    words[node.mapped().place] = {std::move(node.key()), node.mapped().count};
  }
  return words;
}

// Bytes of the word character at the front of valid UTF-8; 0 if another one is there, or none.
std::size_t word_character_at_front(std::string_view text) {
  if (text.empty()) return 0;
  const DecodedCharacter c = decode_character(text);
  return is_word_character(c.value) ? static_cast<std::size_t>(c.length) : 0;
}

// Bytes of an apostrophe at the front, straight or curved.
std::size_t apostrophe_at_front(std::string_view text) {
  constexpr std::string_view kCurved = "\u2019";
  if (text.starts_with('\'')) return 1;
  return text.starts_with(kCurved) ? kCurved.size() : 0;
}

// Whether it is a word character of ASCII, by byte.
constexpr auto kAsciiWordBytes = [] {
  std::array<bool, 256> is_word{};
  for (std::size_t c = 0; c < 0x80; ++c) {
    is_word[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  }
  return is_word;
}();

// Length of the run of ASCII word characters at the front.
std::size_t ascii_word_run(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && kAsciiWordBytes[static_cast<unsigned char>(text[n])]) ++n;
  return n;
}

bool ascii_at(std::string_view text, std::size_t n) {
  return n < text.size() && static_cast<unsigned char>(text[n]) < 0x80;
}

// Bytes of the word at the front of a text that begins with no white space.
std::size_t word_at_front(std::string_view text) {
  // Most words are ASCII, and end before ASCII.
  std::size_t end = ascii_word_run(text);
  if (end > 0 && ascii_at(text, end) && text[end] != '\'') return end;
  if (end == 0 && ascii_at(text, 0)) return 1;
  if (end == 0) end = word_character_at_front(text);
  if (end == 0) return static_cast<std::size_t>(decode_character(text).length);
  for (;;) {
    std::size_t next = word_character_at_front(text.substr(end));
    if (next == 0) {
      const std::size_t apostrophe = apostrophe_at_front(text.substr(end));
      if (apostrophe == 0) return end;
      next = word_character_at_front(text.substr(end + apostrophe));
      if (next == 0) return end;
      next += apostrophe;
    }
    end += next;
  }
}

// Whether white space may be at the front: nearly no other character needs a closer look.
bool may_be_white_space(std::string_view text) {
  const auto byte = text.empty() ? 'a' : static_cast<unsigned char>(text.front());
  return byte <= ' ' || byte >= 0x80;
}

}  // namespace

std::vector<char32_t> characters_by_frequency(std::string_view text, std::string_view name,
                                              LetterCase letters) {
  require_utf8(text, name);
  std::vector<index> counts;  // by code point, up to the largest one seen
  while (!text.empty()) {
    const DecodedCharacter c = decode_character(text);
    const char32_t value = letters == LetterCase::kLower ? lower_character(c.value) : c.value;
    if (value >= counts.size()) counts.resize(value + 1);
    ++counts[value];
    text.remove_prefix(static_cast<std::size_t>(c.length));
  }
  std::vector<char32_t> characters;
  for (char32_t c = 0; c < counts.size(); ++c) {
    if (counts[c] > 0) characters.push_back(c);
  }
  std::stable_sort(characters.begin(), characters.end(),
                   [&](char32_t a, char32_t b) { return counts[a] > counts[b]; });
  return characters;
}

std::string_view take_word(std::string_view& text, WordSplit split) {
  while (may_be_white_space(text)) {
    const std::size_t space = white_space_at_front(text);
    if (space == 0) break;
    text.remove_prefix(space);
  }
  std::size_t end = 0;
  if (split == WordSplit::kPunctuation && !text.empty()) end = word_at_front(text);
  while (split == WordSplit::kSpaces && end < text.size() &&
         white_space_at_front(text.substr(end)) == 0)
    ++end;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

index count_words(std::string_view text, WordSplit split) {
  index words = 0;
  while (!take_word(text, split).empty()) ++words;
  return words;
}

std::vector<CountedWord> distinct_words(std::string_view text, std::string_view name,
                                        LetterCase letters, WordSplit split) {
  require_utf8(text, name);
  SeenWords seen;
  std::string lower;
  for (std::string_view word = take_word(text, split); !word.empty();
       word = take_word(text, split)) {
    if (letters == LetterCase::kLower) word = lower = lower_text(word);
    const auto found = seen.find(word);
    if (found != seen.end()) {
      ++found->second.count;
    } else {
      require_memory_to_double(seen.size());
      const std::size_t place = seen.size();
      seen.emplace(word, Seen{1, place});
    }
  }
  return list_of(std::move(seen));
}

std::vector<CountedWord> frequent_words(std::vector<CountedWord> words, index min_count) {
  std::erase_if(words, [&](const CountedWord& word) { return word.count < min_count; });
  std::stable_sort(words.begin(), words.end(),
                   [](const CountedWord& a, const CountedWord& b) { return a.count > b.count; });
  return words;
}

}  // namespace fovea
