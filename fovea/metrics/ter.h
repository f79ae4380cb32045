// SPDX-License-Identifier: Apache-2.0
// TER (Snover, Dorr, Schwartz, Micciulla, Makhoul 2006, "A study of translation edit rate with
// targeted human annotation"), as sacreBLEU computes it: without tercom's normalisation, in lower
// case. Its edits are insertions, deletions and substitutions of words, and shifts of runs of words
// (section 2, algorithm 1). The limits and the order in which shifts are
// preferred are those of tercom 7.25, as sacreBLEU has them: they decide the result.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/metrics/translation.h"

namespace fovea {

/// 100 x (insertions + deletions + substitutions + shifts) / words of the reference. With several
/// references the fewest edits count, and the mean of their lengths.
std::unique_ptr<TranslationMetric> ter();

}  // namespace fovea

namespace fovea::detail {

/// How many edits make the hypothesis equal to the reference, each a list of numbered words: those
/// left after the shifts that a greedy search finds, and these shifts, each counting as 1.
index shifted_edits(std::u32string_view hypothesis, std::u32string_view reference);

/// One step of the way from the hypothesis to the reference.
enum class Edit : char { kNone, kSubstitute, kDelete, kInsert };

/// Edit distances of one hypothesis in many orders to one reference, within a band of 25 words
/// around the diagonal. The front that orders have in common is computed once.
class EditDistance {
 public:
  /// Both have at least one word.
  EditDistance(std::size_t hypothesis, std::u32string_view reference);

  /// `words` has the length that the constructor was given.
  index of(std::u32string_view words);
  /// The edits from the first word to the last, of the words that of() was called with last.
  std::vector<Edit> edits() const;

 private:
  struct Cell {
    int cost;
    Edit edit;
  };

  Cell& cell(std::size_t i, std::size_t j) { return cells_[i * (reference_.size() + 1) + j]; }
  const Cell& cell(std::size_t i, std::size_t j) const {
    return cells_[i * (reference_.size() + 1) + j];
  }
  void fill_row(std::size_t i);

  const std::u32string_view reference_;
  std::u32string words_;     // those of the last call
  std::vector<Cell> cells_;  // [hypothesis + 1, reference + 1]
  double ratio_;             // words of the reference for each of the hypothesis
  index width_;              // of half of the band
};

}  // namespace fovea::detail
