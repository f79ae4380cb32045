// SPDX-License-Identifier: Apache-2.0
// chrF (Popovic 2015, "chrF: character n-gram F-score for automatic MT evaluation") and chrF++
// (Popovic 2017, "chrF++: words helping character n-grams").
#pragma once

#include <memory>

#include "fovea/metrics/translation.h"

namespace fovea {

struct ChrfOptions {
  index word_order = 0;  ///< n-grams of words up to this length count, too; 2: chrF++
  LetterCase letters = LetterCase::kKept;
};

/// F of n-grams of up to 6 characters, recall counting beta = 2 times as much as precision; white
/// space is no character. Precision and recall are means over the orders that both texts have.
/// Among several references the one with the highest score counts.
std::unique_ptr<TranslationMetric> chrf(const ChrfOptions& options = {});

}  // namespace fovea
