// SPDX-License-Identifier: Apache-2.0
// How well a translation keeps the order of words, whatever else is wrong with it.
#pragma once

#include <span>
#include <string>

namespace fovea {

/// The share of all pairs of words, which a translation [N] and its reference [N] both have exactly
/// once, that stand in the same order in both; 1 if there are none. (Its mean for words in random
/// order is one half; 2 x - 1 is Kendall's tau of those words.) Words stand between spaces. Throws
/// kShape if there are not as many references as translations.
double word_order(std::span<const std::string> translations,
                  std::span<const std::string> references);

}  // namespace fovea
