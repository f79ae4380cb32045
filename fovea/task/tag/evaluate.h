// SPDX-License-Identifier: Apache-2.0
// Runs a tagger or a segmenter over a test set, and says how good its tags are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/config/json.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/spans.h"
#include "fovea/task/tag/settings.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

/// A sentence with tags that are wrong.
struct TaggedMistake {
  std::string file;
  index line = 0;  ///< of its first word
  std::vector<std::string> words;
  std::vector<std::string> truth = {}, predicted = {};  ///< [words]
  index wrong = 0;                                      ///< words whose tag is wrong
};

/// The words that characters are, by their tags; behind each word its own tag, if it has one.
/// Characters that could control a terminal are escaped.
std::string in_words(const std::vector<std::string>& characters,
                     const std::vector<std::string>& tags);

/// The scores on the test set; those that the kind of the model does not have are empty.
struct TaggerScore {
  std::string column = {};  ///< of one among several tag columns
  TagTask task = TagTask::kTag;
  index sentences = 0, words = 0;
  index unknown_tags = 0;  ///< words whose tag the model does not know
  double confidence = 0.95;
  std::vector<std::string> types = {};  ///< of spans

  SpanIntervals spans = {};                       ///< without a scheme only the accuracy
  bool has_spans = false;                         ///< the rest of them means something
  std::optional<ConfusionMatrix> confusion = {};  ///< [types + 1]: see type_confusion()
  std::optional<SegmentationIntervals> segmentation = {};
  std::vector<TaggedMistake> mistakes = {};  ///< those with the most wrong tags

  /// Calls f(name, interval) for each number of the whole test set.
  template <class F>
  void visit_numbers(F&& f) const {
    if (segmentation) {
      SegmentationIntervals::visit_numbers(
          *segmentation, [&](const NumberName& name, const Interval& n) { f(name.name, n); });
    }
    if (!has_spans) return f("accuracy", spans.accuracy);
    SpanIntervals::visit_numbers(spans, [&](const NumberName& name, const Interval& n) {
      if (name.label < 0) f(name.name, n);
    });
  }
};

/// The number that represents a column: micro F1 of its spans, or the accuracy of its tags.
double main_number(const TaggerScore& score);
/// The mean of these over the columns.
double mean_score(std::span<const TaggerScore> columns);

/// One object: "task", "sentences", "words", each number as {"value", "low", "high"}, "types" with
/// the numbers of each, "confusion" [true][predicted], "mistakes". With several columns "mean" and
/// "columns", such an object each, with "column".
Json json_of_scores(std::span<const TaggerScore> columns);

struct TaggerTestOptions {
  TaggedOptions table = {};  ///< how the files are read
  index mistakes = 0;        ///< how many of the worst sentences to keep
  BootstrapOptions bootstrap = {};
};

/// The scores of the sentences of all files, in each tag column of the model. Spans are those that
/// conlleval reads, of tags of any scheme: those of the files need not have the model's. Appends
/// what a user may want to know to `notes`.
///
/// Throws as TaggedReader does, kInputFormat ("FILE:LINE: ...") for a tag that is none of a scheme
/// where the model's tags mark spans, kModelDamaged, kOptionValue (also for another number of tag
/// columns).
std::vector<TaggerScore> evaluate_tagger(const Context& context, const LoadedTagger& model,
                                         std::span<const std::string> files,
                                         const TaggerTestOptions& options,
                                         std::vector<std::string>& notes);

}  // namespace fovea
