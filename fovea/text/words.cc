// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/words.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/machine.h"
#include "fovea/base/words.h"
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
    const TakenCharacter c = take_character(text);
    const char32_t value = letters == LetterCase::kLower ? lower_character(c.value) : c.value;
    if (value >= counts.size()) counts.resize(value + 1);
    ++counts[value];
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

bool is_cjk(char32_t c) {
  return (c >= 0x2E80 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || c >= 0x20000;
}

bool has_no_blanks(char32_t c) {
  return is_cjk(c) || (c >= 0x0E00 && c <= 0x0EFF) || (c >= 0x1000 && c <= 0x109F) ||
         (c >= 0x1780 && c <= 0x17FF);
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

namespace {

struct Counts {
  index capitals = 0, small = 0, digits = 0, marks_of_numbers = 0, others = 0;
  bool first_is_capital = false;
};

Counts count(std::string_view word) {
  constexpr std::string_view kMarks = ".,:/-+";
  Counts n;
  for (bool first = true; !word.empty(); first = false) {
    const TakenCharacter c = take_character(word);
    if (c.value >= '0' && c.value <= '9') {
      ++n.digits;
    } else if (lower_character(c.value) != c.value) {
      ++n.capitals;
      n.first_is_capital |= first;
    } else if (is_word_character(c.value)) {
      ++n.small;
    } else if (c.value < 0x80 && kMarks.find(static_cast<char>(c.value)) != kMarks.npos) {
      ++n.marks_of_numbers;
    } else {
      ++n.others;
    }
  }
  return n;
}

std::int32_t letters_of(const Counts& n) {
  if (n.capitals == 0) return n.small == 0 ? 0 : 1;
  if (n.small == 0 && n.capitals > 1) return 3;
  return n.first_is_capital && n.capitals == 1 ? 2 : 4;
}

}  // namespace

std::int32_t word_shape(std::string_view word) {
  const Counts n = count(word);
  const bool is_number = n.digits > 0 && n.capitals + n.small + n.others == 0;
  const std::int32_t digits = n.digits == 0 ? 0 : is_number ? 2 : 1;
  const bool address = word.size() > 1 && (word.starts_with('@') || word.starts_with('#') ||
                                           word.starts_with("http") || word.starts_with("www."));
  const bool other = n.others > 0 || (n.marks_of_numbers > 0 && !is_number);
  return 9 * letters_of(n) + 3 * digits + (address ? 2 : other ? 1 : 0);
}

namespace {

constexpr std::u32string_view kClosing = U".,;:!?%)]}\u2026\u201D\u00B0",
                              kOpening = U"([{\u00BF\u00A1\u201E\u201A#$\u00A3@",
                              kWide =
                                  U"\u3001\u3002\u300A\u300B\u300C\u300D\u300E\u300F\u3010"
                                  U"\u3011\uFF01\uFF08\uFF09\uFF0C\uFF1A\uFF1B\uFF1F",
                              kJoining = U"-/\u2010\u2011", kOfNumbers = U".,:";

bool is_any_of(std::u32string_view characters, char32_t c) {
  return characters.find(c) != std::u32string_view::npos;
}

// A word as the rules see it. Its first character tells which punctuation it is.
struct Piece {
  std::string_view text;
  char32_t first;
  bool is_word() const { return is_word_character(first); }
  bool is_number() const { return first >= U'0' && first <= U'9'; }
};

struct Joins {
  bool before = false, behind = false;  // no blank there
};

// Lowers letters of ASCII alone.
std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return low;
}

// Whether `part` stands in `text`, and no letter or digit beside it: "1,5" does not in "11,5".
bool has_whole(std::string_view text, std::string_view part) {
  const auto is_of_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                static_cast<unsigned char>(text[at]) >= 0x80);
  };
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) {
    if (!(at > 0 && is_of_word(at - 1)) && !is_of_word(at + part.size())) return true;
  }
  return false;
}

bool has_lone_hyphen(std::string_view text) {
  const std::vector<std::string_view> words = parts_between(text, ' ');
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    for (const std::string_view sign : {"-", "\u2010", "\u2011", "\u2013", "\u2014"}) {
      if (words[i] == sign) return true;
    }
  }
  return false;
}

class Joiner {
 public:
  Joiner(std::string_view words, std::string_view source)
      : source_(lower(source)), has_lone_hyphen_(has_lone_hyphen(source)) {
    for (const std::string_view word : parts_between(words, ' ')) {
      if (!word.empty()) pieces_.push_back({word, decode_character(word).value});
    }
  }

  std::string joined() {
    std::string text;
    bool joins = true;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Joins of = joins_of(i);
      if (!joins && !of.before) text += ' ';
      text += pieces_[i].text;
      joins = of.behind;
    }
    return text;
  }

 private:
  Joins joins_of(std::size_t i) {
    const Piece& piece = pieces_[i];
    const char32_t c = piece.first;
    if (piece.is_word()) return {};
    const bool after_word = i > 0 && pieces_[i - 1].is_word();
    const bool before_word = i + 1 < pieces_.size() && pieces_[i + 1].is_word();
    if (is_any_of(kWide, c)) return {true, true};
    if (is_any_of(kJoining, c) && after_word && before_word) {
      const bool joins = c == U'/' || !has_lone_hyphen_ || source_joins(i, {&piece.text, 1});
      return {joins, joins};
    }
    if (is_any_of(kOfNumbers, c) && after_word && before_word && pieces_[i - 1].is_number() &&
        pieces_[i + 1].is_number()) {
      return {true, numbers_join(i)};
    }
    if (c == U'"' || c == U'\'' || c == U'\u2018' || c == U'\u2019' || c == U'\u201C') {
      return joins_of_quote(i);
    }
    return {is_any_of(kClosing, c), is_any_of(kOpening, c)};
  }

  // Whether the source has the words beside piece i as a whole, with one of `between` between them.
  bool source_joins(std::size_t i, std::span<const std::string_view> between) const {
    return std::any_of(between.begin(), between.end(), [&](std::string_view sign) {
      return has_whole(source_, fmt::format("{}{}{}", lower(pieces_[i - 1].text), lower(sign),
                                            lower(pieces_[i + 1].text)));
    });
  }

  bool numbers_join(std::size_t i) const {
    constexpr std::string_view kSigns[] = {".", ",", ":"}, kApart[] = {". ", ", ", ": "};
    if (source_joins(i, kSigns)) return true;
    if (source_joins(i, kApart)) return false;
    return pieces_[i].first != U',' || pieces_[i + 1].text.size() == 3;
  }

  // A quote opens or closes by turns. An apostrophe that no other follows ends a word ("dogs'");
  // U+201C closes what U+201E has opened, as in German.
  Joins joins_of_quote(std::size_t i) {
    const char32_t c = pieces_[i].first;
    if (c == U'\u2018') return {false, true};
    if (c == U'\u201C') {
      const bool closes =
          std::any_of(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(i),
                      [](const Piece& p) { return p.first == U'\u201E'; });
      return {closes, !closes};
    }
    bool& open = c == U'"' ? double_ : single_;
    const bool again = std::any_of(pieces_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   pieces_.end(), [&](const Piece& p) { return p.first == c; });
    if (!open && (again || i == 0) && c != U'\u2019') {
      open = true;
      return {false, true};
    }
    open = false;
    return {true, false};
  }

  const std::string source_;  // in lower case
  const bool has_lone_hyphen_;
  std::vector<Piece> pieces_;
  bool single_ = false, double_ = false;  // open
};

}  // namespace

std::string detokenized(std::string_view words, std::string_view source) {
  return Joiner(words, source).joined();
}

std::string truecased(std::string_view text) {
  std::string out;
  bool begins = true, ended = false;
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    const bool raises = begins && is_word_character(c.value);
    append_utf8(out, raises ? static_cast<char32_t>(
                                  utf8proc_totitle(static_cast<utf8proc_int32_t>(c.value)))
                            : c.value);
    if (raises) begins = false;
    if (ended && is_white_space(c.value)) begins = true;
    ended = c.value == U'.' || c.value == U'!' || c.value == U'?' ||
            (ended && (c.value == U'"' || c.value == U'\'' || c.value == U')'));
  }
  return out;
}

}  // namespace fovea
