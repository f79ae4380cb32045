// SPDX-License-Identifier: Apache-2.0
// The Objective of a language model: connects model and text with the Trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fovea/data/batcher.h"
#include "fovea/model/language_model.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/objective.h"

namespace fovea {

/// The loss of the model on the set, see loss_of_batches().
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

class LanguageModelObjective final
    : public ObjectiveOf<LanguageModel, TrainingBatches, LossOptions> {
 public:
  LanguageModelObjective(const Context& context, const LanguageModel& model,
                         LanguageModelText text);

  bool has_validation() const override { return text_.validation != nullptr; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override;
  std::optional<Validation> validate_training(const std::function<bool()>& interrupted) override;

 private:
  index targets_of(const Batch& batch) const override { return batch.target_count(); }
  Variable loss_of_batch(const Batch& batch) override;

  const LanguageModelText text_;
};

/// RunTraining calls these.
std::vector<NamedFile> model_files(const LanguageModelRun& run);
LanguageModel make_model(const LanguageModelRun& run);
LanguageModelObjective make_objective(const Context& context, const LanguageModel& model,
                                      const LanguageModelRun& run);

}  // namespace fovea
