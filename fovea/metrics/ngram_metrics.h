// SPDX-License-Identifier: Apache-2.0
// Scores of translations that count n-grams: BLEU and chrF.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fovea/base/types.h"
#include "fovea/metrics/translation.h"
#include "fovea/text/keyed_hash.h"

namespace fovea::detail {

/// How often each n-gram occurs. It views the units, which must outlive it.
using Ngrams = KeyedMap<std::u32string_view, index>;

/// All n-grams of the units, n >= 1.
Ngrams ngrams_of(std::u32string_view units, index n);

/// Raises each count to that of `other`, where that is larger.
void take_larger(Ngrams& ngrams, const Ngrams& other);

/// The sum over n-grams of the smaller of both counts.
index count_shared(const Ngrams& a, const Ngrams& b);

/// How many n-grams there are in so many units.
constexpr index ngram_count(std::size_t units, index n) {
  return static_cast<index>(units) < n ? 0 : static_cast<index>(units) - n + 1;
}

/// Gives equal words equal numbers. It views the words, which must outlive it.
class WordNumbers {
 public:
  std::u32string of(std::span<const std::string_view> words);

 private:
  KeyedMap<std::string_view, char32_t> numbers_;
};

}  // namespace fovea::detail

namespace fovea {

// BLEU (Papineni, Roukos, Ward, Zhu 2002, "BLEU: a method for automatic evaluation of machine
// translation"), with the smoothing of mteval-v13a.pl (Chen, Cherry 2014, "A systematic comparison
// of smoothing techniques for sentence-level BLEU", method 3).

struct BleuOptions {
  BleuTokens tokens = BleuTokens::k13a;
  LetterCase letters = LetterCase::kKept;
};

/// The parts of a score.
struct BleuScore {
  double score = 0;                       ///< brevity exp(mean of log precisions)
  std::array<double, 4> precisions = {};  ///< in percent, smoothed
  double brevity = 1;                     ///< the penalty, exp(1 - reference / hypothesis) if short
  double hypothesis_length = 0, reference_length = 0;  ///< tokens

  /// "68.1/43.2/29.5/20.4 (BP = 1.000 ratio = 1.012 hyp_len = 12345 ref_len = 12198)"
  std::string details() const;
};

/// The score of a corpus counts orders up to 4. That of a sentence counts those up to the longest
/// that the sentence has (sacreBLEU's sentence_bleu, `eff:yes`).
enum class BleuOrder { kFour, kEffective };

/// The score of sums over sentences of [hypothesis length, reference length, 4 right n-grams, 4
/// n-grams].
BleuScore bleu_score(Vec<const double> sums, BleuOrder order = BleuOrder::kFour);

std::unique_ptr<TranslationMetric> bleu(const BleuOptions& options = {});

// chrF (Popovic 2015, "chrF: character n-gram F-score for automatic MT evaluation") and chrF++
// (Popovic 2017, "chrF++: words helping character n-grams").

struct ChrfOptions {
  index word_order = 0;  ///< n-grams of words up to this length count, too; 2: chrF++
  LetterCase letters = LetterCase::kKept;
};

/// F of n-grams of up to 6 characters, recall counting beta = 2 times as much as precision; white
/// space is no character. Precision and recall are means over the orders that both texts have.
/// Among several references the one with the highest score counts.
std::unique_ptr<TranslationMetric> chrf(const ChrfOptions& options = {});

}  // namespace fovea
