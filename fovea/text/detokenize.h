// SPDX-License-Identifier: Apache-2.0
// Puts words together again that WordSplit::kPunctuation has cut.
#pragma once

#include <string>
#include <string_view>

namespace fovea {

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
