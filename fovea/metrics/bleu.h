// SPDX-License-Identifier: Apache-2.0
// BLEU (Papineni, Roukos, Ward, Zhu 2002, "BLEU: a method for automatic evaluation of machine
// translation"), with the smoothing of mteval-v13a.pl (Chen, Cherry 2014, "A systematic comparison
// of smoothing techniques for sentence-level BLEU", method 3).
#pragma once

#include <array>
#include <memory>

#include "fovea/metrics/translation.h"

namespace fovea {

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

}  // namespace fovea
