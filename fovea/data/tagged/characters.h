// SPDX-License-Identifier: Apache-2.0
// Words as characters with tags that say where in a word each is: what a segmenter learns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/tagged/tagged_reader.h"

namespace fovea {

/// The characters of UTF-8 text; white space is none.
std::vector<std::string> characters_of(std::string_view text);

/// The sentence of the characters of these words, with the tags S (a word of one character), B, M
/// and E (the first, the middle, the last ones of a word); where words have tags (of one column),
/// "B-NOUN" and so on. A character is on the line of its word; there is no source. Words of white
/// space are left out.
TaggedSentence to_characters(const TaggedSentence& words);

}  // namespace fovea
