// SPDX-License-Identifier: Apache-2.0
// The training of a text classifier: preparing, what it costs, and training itself.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/examples.h"
#include "fovea/data/word_vectors.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/notices.h"
#include "fovea/task/classify/read_texts.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/training_task.h"

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

/// A run that is ready to begin: the texts are read, the vocabulary and labels known, every size
/// filled in.
struct ClassifierRun {
  ClassifierSettings settings;
  ClassifierOutputs outputs;
  std::vector<double> class_weights;          ///< [classes], or empty: all are 1
  std::vector<std::string> overview;          ///< a summary of the texts for people, a line each
  std::vector<std::string> notes;             ///< warnings about them
  std::unique_ptr<Tokenizer> tokenizer;       ///< null with input npz
  FrameSet frames;                            ///< with input npz: all samples
  std::unique_ptr<LinearTexts> linear;        ///< of a linear model, which has no `training`
  std::unique_ptr<ExampleTraining> training;  ///< of any other
  std::optional<ExampleEvaluation> validation;
  std::optional<WordVectors> vectors;  ///< [vocabulary], with which rows of its table start
  RunIdentity identity;
  std::shared_ptr<BestUses> uses = std::make_shared<BestUses>();  ///< of the validation so far

  index texts_to_train() const {
    return linear ? linear->training.truth.size() : training->examples().size();
  }
};

/// Checks all options, reads the texts, and learns the tokenizer unless `known` is given. Writes
/// nothing. Throws kOptionValue, kUsage, what LabelledReader and read_word_vectors throw, and
/// kInputFormat, kInputTooSmall for texts whose labels cannot be learned.
ClassifierRun prepare_run(ClassifierSettings settings, std::unique_ptr<Tokenizer> known = nullptr,
                          RunWeights weights = RunWeights::kNew);
/// The same of options that are checked and texts that are read.
ClassifierRun prepare_run(ClassifierSettings settings, LabelledSet set,
                          std::unique_ptr<Tokenizer> known = nullptr,
                          RunWeights weights = RunWeights::kNew);

/// The cost of a run, computed before it begins.
RunCost cost_of(const ClassifierRun& run);
/// FLOPs (multiplications and additions) of the mean update, by a plan of sequences as long as
/// those of the data.
double flops_of_update(const Context& context, const ClassifierRun& run);

/// The most bytes that this process will have resident while it trains; see training_memory() of
/// language models.
double training_memory(const Context& context, const ClassifierRun& run,
                       index checkpoint_bytes = 0);

RunTime estimate_run_time(const Context& context, const ClassifierRun& run,
                          const RunState& done = {});

/// Makes settings that follow from the data those that the run began with.
void keep_found(ClassifierTextOptions& given, const ClassifierTextOptions& began);
/// The same for all; `began` is resolved.
void keep_found(ClassifierSettings& given, const ClassifierSettings& began);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabulary first. Throws
/// also what Trainer::resume does.
TrainResult train_classifier(const Context& context, const ClassifierRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer);

}  // namespace fovea
