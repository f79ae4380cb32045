// SPDX-License-Identifier: Apache-2.0
// The Objective of a language model: connects model and text with the Trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fovea/data/batcher.h"
#include "fovea/model/language_model.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// Negative log-likelihood, in nats, of a whole set.
struct SetLoss {
  double sum = 0;
  index targets = 0;
  double mean() const { return targets > 0 ? sum / static_cast<double>(targets) : 0; }
};

/// The loss of the model on the set, computed on `tape`; nothing if `interrupted` returns true
/// between two batches. The order of summation is fixed.
std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const EvaluationBatches& set,
                               const std::function<bool()>& interrupted);
/// The loss on a text to train on. Random blocks are cut as a text to validate on is: one after
/// another, `block` targets each.
std::optional<SetLoss> loss_of(Tape& tape, const LanguageModel& model, const Sequences& sequences,
                               index batch_size, const std::function<bool()>& interrupted);

/// The batches for training and validation. They must outlive the objective.
struct LanguageModelText {
  TrainingBatches& training;
  const EvaluationBatches* validation;  ///< or null
  index accumulate;                     ///< batches of an update
  std::uint64_t seed;                   ///< of dropout
};

class LanguageModelObjective final : public Objective {
 public:
  LanguageModelObjective(const Context& context, const LanguageModel& model,
                         LanguageModelText text);

  std::span<Parameter* const> parameters() override { return model_.parameters(); }
  index updates_per_epoch() const override { return text_.training.updates_per_epoch(); }
  void observe_attention(bool observe) override { observes_ = observe; }
  AttentionRecord observed_attention() override;
  index begin_update(index update) override;
  double forward(index batch) override;
  void backward() override;
  bool has_validation() const override { return text_.validation != nullptr; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override;
  std::optional<Validation> validate_training(const std::function<bool()>& interrupted) override;

 private:
  const LanguageModel& model_;
  const LanguageModelText text_;
  Tape tape_;  // for updates and, between them, for evaluations
  std::vector<Batch> batches_;
  LossOptions options_;
  bool observes_ = false;
  std::vector<HeadStatistics> seen_;  // an attention each
  Variable loss_;
};

}  // namespace fovea
