// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2, kCapitalDottedI = 0x130;

struct Place {
  std::size_t begin, end;  // bytes
};

// The words' places, by one pass over the characters.
std::vector<Place> places_of_words(std::string_view text) {
  std::vector<Place> places;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedCharacter c = decode_character(text.substr(at));
    const std::size_t next = at + static_cast<std::size_t>(c.length);
    if (is_python_space(c.value)) {
      in_word = false;
    } else if (in_word) {
      places.back().end = next;
    } else {
      places.push_back({at, next});
      in_word = true;
    }
    at = next;
  }
  return places;
}

// Punctuation that stands inside words (Word_Break is MidLetter, MidNumLet or Single_Quote).
constexpr char32_t kInsideWords[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,
                                     0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                     0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool has_case(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT ||
         utf8proc_tolower(static_cast<utf8proc_int32_t>(c)) != static_cast<utf8proc_int32_t>(c) ||
         utf8proc_toupper(static_cast<utf8proc_int32_t>(c)) != static_cast<utf8proc_int32_t>(c);
}

bool is_ignored_for_case(char32_t c) {
  const utf8proc_category_t category = category_of(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK ||
         std::find(std::begin(kInsideWords), std::end(kInsideWords), c) != std::end(kInsideWords);
}

// Whether the first of these characters that counts is a letter with case.
template <class Iterator>
bool begins_with_case(Iterator begin, Iterator end) {
  const Iterator first =
      std::find_if(begin, end, [](char32_t c) { return !is_ignored_for_case(c); });
  return first != end && has_case(*first);
}

bool is_final(const std::u32string& text, std::size_t at) {
  const auto here = text.begin() + static_cast<std::ptrdiff_t>(at);
  return begins_with_case(std::make_reverse_iterator(here), text.rend()) &&
         !begins_with_case(here + 1, text.end());
}

}  // namespace

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

std::vector<std::string_view> python_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (const auto& [begin, end] : places_of_words(text)) {
    words.push_back(text.substr(begin, end - begin));
  }
  return words;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::string_view strip_end(std::string_view text) {
  const std::vector<Place> places = places_of_words(text);
  return text.substr(0, places.empty() ? 0 : places.back().end);
}

std::string_view strip_both(std::string_view text) {
  const std::vector<Place> places = places_of_words(text);
  if (places.empty()) return {};
  return text.substr(places.front().begin, places.back().end - places.front().begin);
}

std::u32string characters_in(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    characters += c.value;
  }
  return characters;
}

std::string python_lower(std::string_view text) {
  const std::u32string characters = characters_in(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const char32_t c = characters[i];
    if (c == kCapitalDottedI) {
      out += "i\xCC\x87";  // i, and a combining dot above
    } else {
      append_utf8(out,
                  c == kCapitalSigma && is_final(characters, i) ? kFinalSigma : lower_character(c));
    }
  }
  return out;
}

}  // namespace fovea
