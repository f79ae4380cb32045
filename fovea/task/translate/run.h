// SPDX-License-Identifier: Apache-2.0
// The training of a translator: preparing, what it costs, and training itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/parallel/pair_batch.h"
#include "fovea/data/parallel/pair_reader.h"
#include "fovea/model/translator.h"
#include "fovea/task/objective.h"
#include "fovea/task/run.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/translator.h"
#include "fovea/train/average.h"

namespace fovea {

/// A run that is ready to begin.
struct TranslatorRun : PreparedRun<TranslatorSettings, PairTraining, PairEvaluation> {
  TranslatorVocabulary vocabulary;
  SentencePairs validation_texts;  ///< of `validation`, in its order
  bool from_base = false;          ///< its model begins with the weights of --base
};

/// Checks all options, reads the pairs, and learns the vocabularies unless they are `known`, or
/// those of a --base. Writes nothing. Throws kOptionValue, kUsage without a file to train on, what
/// read_pairs() throws, kInputTooSmall if no pair is left.
TranslatorRun prepare_run(TranslatorSettings settings,
                          std::optional<TranslatorVocabulary> known = {},
                          RunWeights weights = RunWeights::kNew);

extern template RunCost cost_of(const TranslatorRun&);
extern template double flops_of_update(const Context&, const TranslatorRun&);
extern template double training_memory(const Context&, const TranslatorRun&, index);
extern template double updates_to_come(const TranslatorRun&, const RunState&);
extern template RunTime estimate_run_time(const Context&, const TranslatorRun&, const RunState&);

/// Makes settings that follow from the data those that the run began with, which are
/// resolved.
void keep_found(TranslatorSettings& given, const TranslatorSettings& began);
/// See RunFiles.
RunFiles files_of(const TranslatorTextOptions& text);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabularies first.
/// Throws also what Trainer::resume does.
TrainResult train_translator(const Context& context, const TranslatorRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer);

/// How validations translate: greedily.
TranslationOptions validation_search();

/// Measures "bleu" and "chrf" of greedy translations of the validation, and the score that the
/// metric of the run says: of equal ones the lower loss has the larger. False if `interrupted`
/// returned true meanwhile.
bool measure_translations(const Context& context, const Translator& model, const TranslatorRun& run,
                          const std::function<bool()>& interrupted, Validation& validation);

/// The views of a batch that the model takes.
TranslationBatch view_of(const PairBatch& batch);

/// The loss of the model on the set, see loss_of_batches().
std::optional<SetLoss> loss_of(Tape& tape, const Translator& model, const PairEvaluation& set,
                               const std::function<bool()>& interrupted);

/// Connects a translator and its pairs with the Trainer.
class TranslatorObjective final
    : public ObjectiveOf<TranslatorRun, Translator, TranslatorLossOptions> {
 public:
  TranslatorObjective(const Context& context, const Translator& model, const TranslatorRun& run)
      : ObjectiveOf(context, model, run, {.smoothing = run.settings.text.label_smoothing}) {}

  /// Keeps the best weights there.
  void keep_best(BestWeights& best) { best_ = &best; }

  index begin_update(index update) override;
  void evaluated(index step, const Validation& found) override {
    if (best_ != nullptr) best_->evaluated(step, found.goodness(), parameters());
  }
  index kept_evaluations() const override {
    return best_ != nullptr ? static_cast<index>(best_->steps().size()) : 0;
  }
  std::vector<std::string> resumed(const RunState& state) override {
    if (best_ == nullptr) return {};
    return best_->go_on_from(state.step, state.best_kept);
  }
  std::optional<Validation> validate(const Interrupted& interrupted) override;

 private:
  index targets_of(const PairBatch& batch) const override { return batch.target_count(); }
  Variable loss_of_batch(const PairBatch& batch) override {
    return model_.loss(tape_, view_of(batch), options_);
  }
  std::optional<Validation> measure_set(const PairEvaluation& set,
                                        const Interrupted& interrupted) override {
    return validation_of(loss_of(free_tape(), model_, set, interrupted));
  }

  BestWeights* best_ = nullptr;
};

}  // namespace fovea
