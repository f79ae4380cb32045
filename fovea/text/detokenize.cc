// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/detokenize.h"

#include <utf8proc.h>

#include <algorithm>
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

class Joiner {
 public:
  explicit Joiner(std::string_view words) {
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
    if (is_any_of(kJoining, c) && after_word && before_word) return {true, true};
    if (is_any_of(kOfNumbers, c) && after_word && before_word && pieces_[i - 1].is_number() &&
        pieces_[i + 1].is_number()) {
      return {true, true};
    }
    if (c == U'"' || c == U'\'' || c == U'\u2018' || c == U'\u2019' || c == U'\u201C') {
      return joins_of_quote(i);
    }
    return {is_any_of(kClosing, c), is_any_of(kOpening, c)};
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

  std::vector<Piece> pieces_;
  bool single_ = false, double_ = false;  // open
};

}  // namespace

std::string detokenized(std::string_view words) { return Joiner(words).joined(); }

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
