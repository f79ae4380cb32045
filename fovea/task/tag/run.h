// SPDX-License-Identifier: Apache-2.0
// The training of a tagger: preparing, what it costs, and training itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/tagged/tagged_batch.h"
#include "fovea/data/word_vectors.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/objective.h"
#include "fovea/task/run.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

/// A run that is ready to begin.
struct TaggerRun : PreparedRun<TaggerSettings, TaggedTraining, TaggedEvaluation> {
  TaggerOutputs outputs;
  std::vector<TagSet> tags;  ///< of each tag column
  TaggerVocabulary vocabulary;
  std::optional<WordVectors> vectors;  ///< [vocabulary], with which rows of its table start
  bool from_base = false;              ///< its model begins with the weights of the base
  index frozen = 0;                    ///< values that are not trained, of a base
  EncoderAdapters adapters = {};       ///< of --lora, which leave the base as it is
};

/// Checks all options, reads the sentences, and learns the vocabulary unless `known` is given.
/// Writes nothing. Throws kOptionValue, kUsage, what read_tagged_set and read_word_vectors throw.
TaggerRun prepare_run(TaggerSettings settings, std::optional<TaggerVocabulary> known = {},
                      RunWeights weights = RunWeights::kNew);

extern template RunCost cost_of(const TaggerRun&);
extern template double flops_of_update(const Context&, const TaggerRun&);
extern template double training_memory(const Context&, const TaggerRun&, index);
extern template double updates_to_come(const TaggerRun&, const RunState&);
extern template RunTime estimate_run_time(const Context&, const TaggerRun&, const RunState&);

/// Makes settings that follow from the data those that the run began with.
void keep_found(TaggerTextOptions& given, const TaggerTextOptions& began);
/// Does so for all settings; `began` is resolved.
void keep_found(TaggerSettings& given, const TaggerSettings& began);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabulary first. Throws
/// also what Trainer::resume does.
TrainResult train_tagger(const Context& context, const TaggerRun& run,
                         const std::filesystem::path& folder, StartAt start,
                         TrainingObserver& observer);

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
Validation measure(const SetTags& found, const TaggedWords& truth, const TaggerRun& run);

/// The unit of losses.
constexpr std::string_view loss_unit_of(TagTask task) {
  return task == TagTask::kSegment ? "nats per character" : "nats per word";
}

/// Connects a tagger and its sentences with the Trainer.
class TaggerObjective final : public ObjectiveOf<TaggerRun, Tagger, TaggerLossOptions> {
 public:
  TaggerObjective(const Context& context, const Tagger& model, const TaggerRun& run)
      : ObjectiveOf(context, model, run) {
    train_adapters(adapters_of(run, model));
  }

  std::string_view loss_unit() const override { return loss_unit_of(run_.settings.text.task); }
  std::vector<double> rates() override {
    return encoder_rates(parameters(), model_.config(), run_.settings.from);
  }

 private:
  index targets_of(const TaggedBatch& batch) const override { return batch.tokens(); }
  Variable loss_of_batch(const TaggedBatch& batch) override;
  std::optional<Validation> measure_set(const TaggedEvaluation& set,
                                        const Interrupted& interrupted) override;
};

}  // namespace fovea
