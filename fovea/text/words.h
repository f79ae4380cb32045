// SPDX-License-Identifier: Apache-2.0
// The words of a text: taken and counted, their shapes, and put together again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

enum class LetterCase {
  kKept,
  kLower,  ///< every character by lower_character
};

/// The distinct characters of `text`, the most frequent first, equally frequent ones by code point.
/// Throws kEncoding, naming `name`, if the text is not UTF-8.
std::vector<char32_t> characters_by_frequency(std::string_view text, std::string_view name,
                                              LetterCase letters = LetterCase::kKept);

/// Takes the next word, and the white space before it, from the front of valid UTF-8; empty if
/// there is none. Words are what stands between white space (see is_white_space); with kPunctuation
/// a word is a run of word characters, with apostrophes between two of them ("don't"), and any
/// other character is a word of its own.
std::string_view take_word(std::string_view& text, WordSplit split = WordSplit::kSpaces);

/// Whether the character is of Chinese or Japanese.
bool is_cjk(char32_t c);
/// Whether its script has no blanks between words: is_cjk(), or Thai, Lao, Burmese or Khmer.
bool has_no_blanks(char32_t c);

/// The number of words of valid UTF-8.
index count_words(std::string_view text, WordSplit split = WordSplit::kSpaces);

/// The distinct words of `text`, in the order in which they occur first. Throws kEncoding, naming
/// `name`, if the text is not UTF-8; kOutOfMemory before they take more memory than there is.
std::vector<CountedWord> distinct_words(std::string_view text, std::string_view name,
                                        LetterCase letters, WordSplit split = WordSplit::kSpaces);

/// The words that are counted at least `min_count` times, the most frequent first, equally frequent
/// ones in the order that they had.
std::vector<CountedWord> frequent_words(std::vector<CountedWord> words, index min_count);

/// How many shapes there are.
inline constexpr index kWordShapes = 45;

/// The shape of a word in UTF-8. Models keep its numbers, so they never change:
///
///     9 letters + 3 digits + others, where
///     letters   0 none, 1 all small, 2 the first is a capital, 3 all are (two or more), 4 others;
///               letters of scripts without capitals are small
///     digits    0 none, 1 some, 2 all characters but . , : / - +
///     others    0 none, 1 some other character, 2 it begins with @, #, http or www.
std::int32_t word_shape(std::string_view word);

/// `words` has one blank between two of them. Leaves out those that are not written: before a full
/// stop, comma or closing bracket, behind an opening one, inside of quotes that come in pairs, at a
/// hyphen or slash between words, at a point or comma between digits, and at the punctuation of
/// Chinese and Japanese. Characters without a rule keep their blanks: dashes, signs of arithmetic,
/// guillemets.
///
/// Words alone do not tell "T-shirt" from "a - b", nor "1,000" from "1, 2". There `source`, the
/// line that was translated, decides. Numbers are joined as there, whichever of . , : is between
/// them; of numbers that it does not have, a comma joins three digits to those before. Hyphens are
/// joined unless it has one, or a dash, between blanks; then only words that it joins are, in any
/// case of their letters.
std::string detokenized(std::string_view words, std::string_view source = {});

/// The first letter of each sentence in upper case; a sentence ends with . ! or ? and a blank.
std::string truecased(std::string_view text);

}  // namespace fovea
