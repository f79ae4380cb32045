// SPDX-License-Identifier: Apache-2.0
// The Objective of a text classifier: connects model and texts with the Trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fovea/data/examples.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/objective.h"

namespace fovea {

/// Texts for training and validation, and what is made of them. They must outlive the objective.
struct ClassifierTexts {
  ExampleTraining& training;
  const ExampleEvaluation* validation;       ///< or null
  const std::vector<double>& class_weights;  ///< [classes], or empty: all are 1
  const NumberScale& numbers;                ///< of regression
  Rows<const float> frames = {};             ///< with input npz
  ClassifierMetric metric = ClassifierMetric::kAuto;
  index accumulate = 1;      ///< batches of an update
  std::uint64_t seed = 0;    ///< of dropout
  BestUses* uses = nullptr;  ///< where the labels of validations are counted
};

/// The views of a batch that the model takes. `frames`: with input npz, what the ids name.
LabelledTexts view_of(const ExampleBatch& batch, const ClassifierConfig& config,
                      Rows<const float> frames = {});

/// The model's predictions for a whole set.
struct SetPredictions {
  double loss = 0;            ///< summed, weighted
  double weight = 0;          ///< its divisor for the mean
  std::vector<float> values;  ///< [texts, classes], as Classifier::predictions

  double mean_loss() const { return weight > 0 ? loss / weight : 0; }
};

/// Texts in order, `batch_size` at a time. They must outlive the view.
struct ExampleSet {
  const Examples& examples;
  TargetShape target;
  index batch_size;

  ExampleSet(const ExampleEvaluation& set)
      : examples(set.examples()), target(set.target()), batch_size(set.batch_size()) {}
  explicit ExampleSet(const ExampleTraining& set)
      : examples(set.examples()), target(set.target()), batch_size(set.batch_size()) {}
};

/// Nothing if `interrupted` returns true between two batches. The order of summation is fixed.
std::optional<SetPredictions> predict_set(Tape& tape, const Classifier& model,
                                          const ExampleSet& set,
                                          const std::vector<double>& class_weights,
                                          const std::function<bool()>& interrupted,
                                          Rows<const float> frames = {});

/// Accuracy and macro F1 for classes; for several labels micro and macro F1; for numbers the root
/// of the mean squared error, in their own unit, and Pearson's correlation where there is one. Then
/// the score that `metric` chooses; none for the loss. Among equal ones the lower loss has the
/// larger score.
Validation measure(const SetPredictions& predictions, const Examples& truth,
                   const ClassifierConfig& config, const NumberScale& numbers,
                   ClassifierMetric metric);

/// How many texts with a class have the largest logit [texts, logits] there; none of several labels
/// or numbers.
Hits hits_of(Variable logits, Vec<const std::int32_t> labels, ClassifierTask task);

/// The unit of the loss of such a model.
std::string_view loss_unit_of(const ClassifierConfig& config);

class ClassifierObjective final
    : public ObjectiveOf<Classifier, ExampleTraining, ClassifierLossOptions> {
 public:
  ClassifierObjective(const Context& context, const Classifier& model, ClassifierTexts texts);

  std::string_view loss_unit() const override { return loss_unit_of(model_.config()); }
  bool has_validation() const override { return texts_.validation != nullptr; }
  std::optional<Validation> validate(const std::function<bool()>& interrupted) override {
    return measure_set(*texts_.validation, interrupted, texts_.uses);
  }
  std::optional<Validation> validate_training(const std::function<bool()>& interrupted) override {
    return measure_set(ExampleSet(texts_.training), interrupted);
  }

 private:
  index targets_of(const ExampleBatch& batch) const override { return batch.size(); }
  double weight_of(const ExampleBatch& batch) const override;
  Variable loss_of_batch(const ExampleBatch& batch) override;
  std::optional<Validation> measure_set(const ExampleSet& set,
                                        const std::function<bool()>& interrupted,
                                        BestUses* uses = nullptr);

  const ClassifierTexts texts_;
};

/// Of a run, see RunTraining.
std::vector<NamedFile> model_files(const ClassifierRun& run);
Classifier make_model(const ClassifierRun& run);
ClassifierObjective make_objective(const Context& context, const Classifier& model,
                                   const ClassifierRun& run);

}  // namespace fovea
