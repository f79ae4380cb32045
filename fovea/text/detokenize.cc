// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/detokenize.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <vector>

#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea {

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
    const DecodedCharacter c = decode_character(text);
    text.remove_prefix(static_cast<std::size_t>(c.length));
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
