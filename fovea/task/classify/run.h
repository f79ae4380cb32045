// SPDX-License-Identifier: Apache-2.0
// The training of a text classifier: preparing, what it costs, and training itself.
#pragma once

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
#include "fovea/data/examples.h"
#include "fovea/data/word_vectors.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/notices.h"
#include "fovea/task/classify/read_texts.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/encoder_adapters.h"
#include "fovea/task/objective.h"
#include "fovea/task/run.h"

namespace fovea {

/// Texts, and the labels or numbers of each.
struct KnownTexts {
  std::vector<std::string> texts = {};  ///< [n]
  Examples truth = {};                  ///< [n], without tokens
};

/// The texts of a linear model, which reads them itself.
struct LinearTexts {
  KnownTexts training;
  KnownTexts validation;        ///< or none
  NgramFeatures features = {};  ///< of the texts to train on
};

/// A run that is ready to begin.
struct ClassifierRun : PreparedRun<ClassifierSettings, ExampleTraining, ExampleEvaluation> {
  ClassifierOutputs outputs;
  std::vector<double> class_weights;     ///< [classes], or empty: all are 1
  std::unique_ptr<Tokenizer> tokenizer;  ///< null with input npz, and with a base
  EncoderText pieces = {};               ///< of a base
  TokenizerData kept = {};               ///< of a base: as the folder keeps it
  bool from_base = false;                ///< its model begins with the weights of the base
  index frozen = 0;                      ///< values that are not trained, of a base
  EncoderAdapters adapters = {};         ///< of --lora, which leave the base as it is
  FrameSet frames;                       ///< with input npz: all samples
  std::unique_ptr<LinearTexts> linear;   ///< of a linear model, which has no `training`
  std::optional<WordVectors> vectors;    ///< [vocabulary], with which rows of its table start
  std::shared_ptr<BestUses> uses = std::make_shared<BestUses>();  ///< of the validation so far

  index texts_to_train() const {
    return linear ? linear->training.truth.size() : training->examples().size();
  }
};

/// Checks all options, reads the texts, and learns the tokenizer, or takes that of the base, unless
/// `known` is given. Writes nothing. Throws kOptionValue, kUsage, what LabelledReader and
/// read_word_vectors throw, and kInputFormat, kInputTooSmall for texts whose labels cannot be
/// learned.
ClassifierRun prepare_run(ClassifierSettings settings,
                          std::optional<TokenizerData> known = std::nullopt,
                          RunWeights weights = RunWeights::kNew);
/// Prepares so from options that are checked and texts that are read.
ClassifierRun prepare_run(ClassifierSettings settings, LabelledSet set,
                          std::optional<TokenizerData> known = std::nullopt,
                          RunWeights weights = RunWeights::kNew);

// The cost as of any run; a linear model is solved, which costs what linear.h says.
RunCost cost_of(const ClassifierRun& run);
double flops_of_update(const Context& context, const ClassifierRun& run);
double training_memory(const Context& context, const ClassifierRun& run,
                       index checkpoint_bytes = 0);
RunTime estimate_run_time(const Context& context, const ClassifierRun& run,
                          const RunState& done = {});
extern template double added_memory(const Context&, const ClassifierRun&);

/// The files of its folder, besides those of numbers.
std::vector<NamedFile> model_files(const ClassifierRun& run);

/// Makes settings that follow from the data those that the run began with.
void keep_found(ClassifierTextOptions& given, const ClassifierTextOptions& began);
/// Does so for all settings; `began` is resolved.
void keep_found(ClassifierSettings& given, const ClassifierSettings& began);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabulary first. Throws
/// also what Trainer::resume does.
TrainResult train_classifier(const Context& context, const ClassifierRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer);

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

/// What a metric measures: "accuracy", "macro_f1", "micro_f1", "rmse", "pearson" or "loss". Auto is
/// the accuracy or, of uneven classes, macro F1; of several labels micro F1; of numbers "rmse".
std::string_view measured_by(ClassifierMetric metric, ClassifierTask task, bool is_uneven);
/// Such a number of a validation, negative where less is better; NaN if it has none.
double goodness_by(std::string_view measure, double loss, std::span<const MetricValue> metrics);

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

/// Connects a classifier and its texts with the Trainer.
class ClassifierObjective : public ObjectiveOf<ClassifierRun, Classifier, ClassifierLossOptions> {
 public:
  ClassifierObjective(const Context& context, const Classifier& model, const ClassifierRun& run)
      : ObjectiveOf(context, model, run,
                    {.class_weights = run.class_weights,
                     .label_smoothing = run.settings.text.label_smoothing}) {
    train_adapters(adapters_of(run, model));
  }

  std::string_view loss_unit() const override { return loss_unit_of(model_.config()); }
  std::vector<double> rates() override {
    return encoder_rates(parameters(), model_.config(), run_.settings.from);
  }
  std::optional<Validation> validate_training(const Interrupted& interrupted) override {
    return measured(ExampleSet(*run_.training), interrupted);
  }

 private:
  index targets_of(const ExampleBatch& batch) const override { return batch.size(); }
  double weight_of(const ExampleBatch& batch) const override;
  Variable loss_of_batch(const ExampleBatch& batch) override;
  std::optional<Validation> measure_set(const ExampleEvaluation& set,
                                        const Interrupted& interrupted) override {
    return measured(set, interrupted, run_.uses.get());
  }
  std::optional<Validation> measured(const ExampleSet& set, const Interrupted& interrupted,
                                     BestUses* uses = nullptr);
};

}  // namespace fovea
