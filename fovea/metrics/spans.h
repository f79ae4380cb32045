// SPDX-License-Identifier: Apache-2.0
// How well spans of a text are found: those of tags, such as names, and the words that a text is
// cut into.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/view.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/classification.h"
#include "fovea/metrics/scores.h"
#include "fovea/metrics/tag_scheme.h"

namespace fovea {

// How well spans are found, such as names: those of the truth and those that were predicted, which
// are the same if they begin, end and have a type alike (Tjong Kim Sang, De Meulder 2003,
// "Introduction to the CoNLL-2003 shared task", section 4: conlleval; seqeval).

/// The counts that one sentence adds to the report.
struct SentenceSpans {
  std::vector<TagSpan> truth = {}, predicted = {};  ///< ascending, types in [0, types)
  index tokens = 0, right_tokens = 0;               ///< tokens; those whose tag is right
};

/// Number is double, or Interval.
template <class Number>
struct SpanReportOf {
  index sentences = 0, tokens = 0;
  Number accuracy = {};         ///< share of the tokens whose tag is right
  Number exact = {};            ///< share of the sentences whose spans are all right, and no others
  ScoresOf<Number> micro = {};  ///< of all spans together: conlleval's
  ScoresOf<Number> macro = {};  ///< mean over the types that occur or are predicted
  ScoresOf<Number> weighted = {};            ///< mean over types, weighted by their support
  std::vector<ScoresOf<Number>> types = {};  ///< [types]
  std::vector<index> support = {};           ///< [types]: spans of the truth
  std::vector<index> predicted = {};         ///< [types]
  std::vector<index> right = {};             ///< [types]

  /// Calls f(NumberName, number) for each number: "accuracy", "exact", "micro_precision", ...,
  /// "macro_...", "weighted_..."; then "precision", "recall", "f1" of each type.
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"accuracy"}, self.accuracy);
    f(NumberName{"exact"}, self.exact);
    detail::visit_scores(self.micro, {"micro_precision", "micro_recall", "micro_f1"}, f);
    detail::visit_scores(self.macro, {"macro_precision", "macro_recall", "macro_f1"}, f);
    detail::visit_scores(self.weighted, {"weighted_precision", "weighted_recall", "weighted_f1"},
                         f);
    detail::visit_classes(self.types, f);
  }
  template <class Other>
  void take_sizes(const SpanReportOf<Other>& other) {
    sentences = other.sentences;
    tokens = other.tokens;
    types.resize(other.types.size());
    support = other.support;
    predicted = other.predicted;
    right = other.right;
  }
};
using SpanReport = SpanReportOf<double>;
using SpanIntervals = SpanReportOf<Interval>;

/// Throws Error(kShape) without sentences, for spans out of order, or a type outside of [0, types).
SpanReport span_report(std::span<const SentenceSpans> sentences, index types);

/// Bootstrap intervals of all numbers of the report, over sentences.
SpanIntervals span_intervals(const Context& ctx, std::span<const SentenceSpans> sentences,
                             index types, const BootstrapOptions& options = {});

/// The types that spans have against those that were predicted for the same tokens: [types + 1,
/// types + 1], true types in rows. The last row counts predicted spans whose ends no true span has,
/// the last column true spans whose ends no predicted one has.
ConfusionMatrix type_confusion(std::span<const SentenceSpans> sentences, index types);

// How well a text is cut into words (Sproat, Emerson 2003, "The first international Chinese word
// segmentation bakeoff", section 3): words are right if both of their ends are.

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
