// SPDX-License-Identifier: Apache-2.0
// The file `vocab.txt`: the vocabulary of words for people and other tools, a word a line, in the
// order of the ids from 0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/vocabulary.h"

namespace fovea {

inline constexpr std::string_view kWordListName = "vocab.txt";

/// The file of a tokenizer of words: special_words, then its words.
std::string word_list_text(const TokenizerData& data);

/// The words of such a file behind special_words(marks). Throws kInputFormat, kEncoding, which name
/// the file `name` and the line.
std::vector<std::string> words_of_list(std::string_view text, std::string_view name, bool marks);

}  // namespace fovea
