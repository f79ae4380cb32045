// SPDX-License-Identifier: Apache-2.0
// The Objective of a translator: connects model and pairs with the Trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fovea/data/parallel/pair_batch.h"
#include "fovea/data/parallel/pair_reader.h"
#include "fovea/model/translator.h"
#include "fovea/task/objective.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/run.h"
#include "fovea/train/average.h"

namespace fovea {

/// The validation as text: its translations are measured, too, and choose the best weights.
struct TranslationCheck {
  const TranslatorVocabulary& vocabulary;
  const SentencePairs& texts;
  TranslatorMetric metric = TranslatorMetric::kBleu;  ///< not kLoss
};

/// Pairs for training and validation. They must outlive the objective.
struct TranslatorText {
  PairTraining& training;
  const PairEvaluation* validation;         ///< or null
  const PairEvaluation* trained = nullptr;  ///< the training pairs, if they are measured
  double smoothing = 0;                     ///< of labels, in training
  index accumulate = 1;                     ///< batches of an update
  std::uint64_t seed = 0;                   ///< of dropout
  std::optional<TranslationCheck> check = {};
};

/// How validations translate: greedily.
TranslationOptions validation_search();

/// "bleu" and "chrf" of greedy translations of the texts, as metrics of the validation, and the
/// score that the metric says: of equal ones the lower loss has the larger. False if `interrupted`
/// returned true meanwhile.
bool measure_translations(const Context& context, const Translator& model,
                          const TranslationCheck& check, const std::function<bool()>& interrupted,
                          Validation& validation);

/// The views of a batch that the model takes.
TranslationBatch view_of(const PairBatch& batch);

/// The loss of the model on the set, see loss_of_batches().
std::optional<SetLoss> loss_of(Tape& tape, const Translator& model, const PairEvaluation& set,
                               const std::function<bool()>& interrupted);

class TranslatorObjective final
    : public ObjectiveOf<Translator, PairTraining, TranslatorLossOptions> {
 public:
  TranslatorObjective(const Context& context, const Translator& model, TranslatorText text);

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
  bool has_validation() const override { return text_.validation != nullptr; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override;
  std::optional<Validation> validate_training(const std::function<bool()>& interrupted) override {
    if (text_.trained == nullptr) return std::nullopt;
    return measure(*text_.trained, interrupted);
  }

 private:
  index targets_of(const PairBatch& batch) const override { return batch.target_count(); }
  Variable loss_of_batch(const PairBatch& batch) override {
    return model_.loss(tape_, view_of(batch), options_);
  }
  std::optional<Validation> measure(const PairEvaluation& set,
                                    const std::function<bool()>& interrupted);

  const TranslatorText text_;
  BestWeights* best_ = nullptr;
};

/// RunTraining calls these.
std::vector<NamedFile> model_files(const TranslatorRun& run);
Translator make_model(const TranslatorRun& run);
TranslatorObjective make_objective(const Context& context, const Translator& model,
                                   const TranslatorRun& run);

}  // namespace fovea
