// SPDX-License-Identifier: Apache-2.0
// How well a text is cut into words (Sproat, Emerson 2003, "The first international Chinese word
// segmentation bakeoff", section 3): words are right if both of their ends are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/view.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// The words of one sentence, each by its end, counted in characters from the first one; the last
/// ends are the length of the sentence, the same in both.
struct SegmentedSentence {
  std::vector<index> truth = {}, predicted = {};  ///< ascending
  /// [truth]: 1 for a word that is not in the vocabulary (of the training text); empty: none
  std::vector<std::uint8_t> unknown = {};
};

/// Number is double, or Interval.
template <class Number>
struct SegmentationReportOf {
  index sentences = 0, words = 0, predicted = 0, unknown = 0;
  ScoresOf<Number> words_found = {};
  Number known_recall = {};    ///< of the words in the vocabulary; NaN if there are none
  Number unknown_recall = {};  ///< of the others; NaN if there are none

  /// "precision", "recall", "f1", "known_recall", "unknown_recall".
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    detail::visit_scores(self.words_found, {"precision", "recall", "f1"}, f);
    f(NumberName{"known_recall"}, self.known_recall);
    f(NumberName{"unknown_recall"}, self.unknown_recall);
  }
  template <class Other>
  void take_sizes(const SegmentationReportOf<Other>& other) {
    sentences = other.sentences;
    words = other.words;
    predicted = other.predicted;
    unknown = other.unknown;
  }
};
using SegmentationReport = SegmentationReportOf<double>;
using SegmentationIntervals = SegmentationReportOf<Interval>;

/// Throws Error(kShape) without sentences, for ends that do not ascend or differ in the last one,
/// or flags of another number.
SegmentationReport segmentation_report(std::span<const SegmentedSentence> sentences);

/// Bootstrap intervals of all numbers of the report, over sentences.
SegmentationIntervals segmentation_intervals(const Context& ctx,
                                             std::span<const SegmentedSentence> sentences,
                                             const BootstrapOptions& options = {});

}  // namespace fovea
