// SPDX-License-Identifier: Apache-2.0
// The frequencies of the characters and words of a text.
#pragma once

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

/// The number of words of valid UTF-8.
index count_words(std::string_view text, WordSplit split = WordSplit::kSpaces);

/// The distinct words of `text`, in the order in which they occur first. Throws kEncoding, naming
/// `name`, if the text is not UTF-8; kOutOfMemory before they take more memory than there is.
std::vector<CountedWord> distinct_words(std::string_view text, std::string_view name,
                                        LetterCase letters, WordSplit split = WordSplit::kSpaces);

/// The words that are counted at least `min_count` times, the most frequent first, equally frequent
/// ones in the order that they had.
std::vector<CountedWord> frequent_words(std::vector<CountedWord> words, index min_count);

}  // namespace fovea
