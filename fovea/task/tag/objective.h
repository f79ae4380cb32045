// SPDX-License-Identifier: Apache-2.0
// The Objective of a tagger: connects model and sentences with the Trainer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/tagged/tagged_batch.h"
#include "fovea/task/objective.h"
#include "fovea/task/tag/run.h"

namespace fovea {

/// Sentences for training and validation, and what is made of them. They must outlive the
/// objective.
struct TaggerText {
  TaggedTraining& training;
  const TaggedEvaluation* validation;         ///< or null
  const TaggedEvaluation* trained = nullptr;  ///< the training sentences, if they are measured
  std::span<const TagSet> tags;               ///< of each column
  std::vector<std::string> columns = {};      ///< their names, if there are several
  TaggerMetric metric = TaggerMetric::kAuto;
  bool segments = false;
  bool joint = false;      ///< a segmenter that learns the tags of its words
  index accumulate = 1;    ///< batches of an update
  std::uint64_t seed = 0;  ///< of dropout
};

/// The views of a batch that the model takes.
TaggedRows view_of(const TaggedBatch& batch);

/// The model's tags for a whole set.
struct SetTags {
  double loss = 0;  ///< summed, in nats, over sentences whose tags are all known
  index words = 0;  ///< in these sentences
  std::vector<std::vector<std::int32_t>> tags;  ///< [tag columns], [words of the set]: the best

  double mean_loss() const { return loss / static_cast<double>(std::max<index>(words, 1)); }
};

/// Nothing if `interrupted` returns true between two batches. The order of summation is fixed. If
/// the model has diverged, the loss is not finite, and tags are missing.
std::optional<SetTags> predicted_tags(Tape& tape, const Tagger& model, const TaggedEvaluation& set,
                                      const std::function<bool()>& interrupted);

/// "accuracy" and, with a scheme, "span_f1" (micro; of a segmenter "word_f1", and of one that
/// learns their tags "tagged_word_f1", of words whose tag is right as well); with several columns
/// "accuracy_COLUMN" and so on for each, and "mean", that of their main numbers: span F1 with a
/// scheme, else accuracy; with kAccuracy the accuracy; with kSpanF1 only columns with a scheme
/// count. Then the score that `metric` chooses; none for the loss. Among equal ones the lower loss
/// has the larger score.
Validation measure(const SetTags& found, const TaggedWords& truth, const TaggerText& text);

/// The unit of losses.
constexpr std::string_view loss_unit_of(TagTask task) {
  return task == TagTask::kSegment ? "nats per character" : "nats per word";
}

class TaggerObjective final : public ObjectiveOf<Tagger, TaggedTraining, TaggerLossOptions> {
 public:
  TaggerObjective(const Context& context, const Tagger& model, TaggerText text);

  std::string_view loss_unit() const override {
    return loss_unit_of(text_.segments ? TagTask::kSegment : TagTask::kTag);
  }
  bool has_validation() const override { return text_.validation != nullptr; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override {
    return measure_set(*text_.validation, interrupted);
  }
  std::optional<Validation> validate_training(const std::function<bool()>& interrupted) override {
    if (text_.trained == nullptr) return std::nullopt;
    return measure_set(*text_.trained, interrupted);
  }

 private:
  index targets_of(const TaggedBatch& batch) const override { return batch.tokens(); }
  Variable loss_of_batch(const TaggedBatch& batch) override;
  std::optional<Validation> measure_set(const TaggedEvaluation& set,
                                        const std::function<bool()>& interrupted);

  const TaggerText text_;
};

/// Fills in the rows of its words.
void start_with_vectors(const Tagger& model, const WordVectors& vectors);

/// RunTraining calls these.
std::vector<NamedFile> model_files(const TaggerRun& run);
Tagger make_model(const TaggerRun& run);
TaggerObjective make_objective(const Context& context, const Tagger& model, const TaggerRun& run);

}  // namespace fovea
