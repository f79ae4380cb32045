// SPDX-License-Identifier: Apache-2.0
// The texts of translations: the titles of chapter 7 of Hands-on NLP as its code reads them, and
// how well a translation keeps the order of words, whatever else is wrong with it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/data/parallel/pair_reader.h"

namespace fovea {

/// Line n of one belongs to line n of the other. In lower case, without marks above letters, a
/// blank before each of , . ! ?; the Chinese without blanks. Pairs of which both have fewer than 30
/// characters or words stay.
SentencePairs titles_of(const std::vector<std::string>& chinese,
                        const std::vector<std::string>& english);

/// The share of all pairs of words, which a translation [N] and its reference [N] both have exactly
/// once, that stand in the same order in both; 1 if there are none. (Its mean for words in random
/// order is one half; 2 x - 1 is Kendall's tau of those words.) Words stand between spaces. Throws
/// kShape if there are not as many references as translations.
double word_order(std::span<const std::string> translations,
                  std::span<const std::string> references);

}  // namespace fovea
