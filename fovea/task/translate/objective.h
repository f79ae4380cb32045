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
#include "fovea/task/translate/translation_options.h"
#include "fovea/task/translate/translator.h"
#include "fovea/train/average.h"
#include "fovea/train/trainer.h"

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
  BestWeights* best = nullptr;  ///< keeps the best weights, or null
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

/// Negative log-likelihood, in nats, of a whole set.
struct PairLoss {
  double sum = 0;
  index targets = 0;
  double mean() const { return targets > 0 ? sum / static_cast<double>(targets) : 0; }
};
/// Nothing if `interrupted` returns true between two batches. The order of summation is fixed.
std::optional<PairLoss> loss_of(Tape& tape, const Translator& model, const PairEvaluation& set,
                                const std::function<bool()>& interrupted);

class TranslatorObjective final : public Objective {
 public:
  TranslatorObjective(const Context& context, const Translator& model, TranslatorText text);

  std::span<Parameter* const> parameters() override { return model_.parameters(); }
  index updates_per_epoch() const override { return text_.training.updates_per_epoch(); }
  void observe_attention(bool observe) override { observes_ = observe; }
  AttentionRecord observed_attention() override;
  index begin_update(index update) override;
  void evaluated(index step, const Validation& found) override {
    if (text_.best != nullptr) text_.best->evaluated(step, found.goodness(), parameters());
  }
  index kept_evaluations() const override {
    return text_.best != nullptr ? static_cast<index>(text_.best->steps().size()) : 0;
  }
  std::vector<std::string> resumed(const RunState& state) override {
    if (text_.best == nullptr) return {};
    return text_.best->go_on_from(state.step, state.best_kept);
  }
  double forward(index batch) override;
  void backward() override;
  bool has_validation() const override { return text_.validation != nullptr; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override;
  std::optional<Validation> validate_training(const std::function<bool()>& interrupted) override {
    if (text_.trained == nullptr) return std::nullopt;
    return measure(*text_.trained, interrupted);
  }

 private:
  std::optional<Validation> measure(const PairEvaluation& set,
                                    const std::function<bool()>& interrupted);

  const Translator& model_;
  const TranslatorText text_;
  Tape tape_;  // for updates and, between them, for evaluations
  std::vector<PairBatch> batches_;
  TranslatorLossOptions options_;
  bool observes_ = false;
  std::vector<HeadStatistics> seen_;  // an attention each
  Variable loss_;
};

}  // namespace fovea
