// SPDX-License-Identifier: Apache-2.0
// A language model on text: from files to a trained model folder, and from such a folder to a
// model.
//
// A model folder holds config.json, tokenizer.txt, model.safetensors; a run folder also what
// Trainer writes. A checkpoint is a model folder, too.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/data/batcher.h"
#include "fovea/model/language_model.h"
#include "fovea/task/language_model_settings.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/trainer.h"

namespace fovea {

struct LoadedLanguageModel {
  LanguageModelSettings settings;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<LanguageModel> model;
};

/// Reads config.json alone. Throws kModelMissing if there is none, kModelDamaged, and
/// kModelWrongKind for a model of another kind.
LanguageModelSettings load_settings(const std::filesystem::path& folder);
/// Throws also kModelDamaged where the files do not belong together.
LoadedLanguageModel load_language_model(const std::filesystem::path& folder);

/// The bytes of config.json and back; `name` is the file's name in errors.
std::string config_text(const LanguageModelSettings& settings);
LanguageModelSettings settings_from_text(std::string_view text, const std::string& name);

/// A run that could begin: the text read and cut, the vocabulary known, every size filled in.
struct LanguageModelRun {
  LanguageModelSettings settings;
  std::vector<std::string> notes;  ///< on the text
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<TrainingBatches> training;
  std::optional<EvaluationBatches> validation;
  RunIdentity identity;
  std::size_t text_bytes = 0;
};

/// Checks all options, reads the text, learns the tokenizer unless `known` is given. Writes
/// nothing.
LanguageModelRun prepare_run(LanguageModelSettings settings,
                             std::unique_ptr<Tokenizer> known = nullptr);

/// What a run takes, told before it begins.
struct RunCost {
  index parameters = 0;
  index updates = 0;  ///< 0: the run ends by hours
  index tokens_per_update = 0;
  double flops_per_update = 0;
};
RunCost cost_of(const LanguageModelRun& run);

/// Where a run begins.
struct StartAt {
  bool resume = false;  ///< at the newest whole checkpoint; at 0 if none was due
  std::optional<Checkpoint> checkpoint = {};  ///< at this one
  Future future = Future::kSame;              ///< after that one
};

/// Trains in `folder`, which exists. A new run writes config.json and tokenizer.txt first. Throws
/// also what Trainer::resume does.
TrainResult train_language_model(const Context& context, const LanguageModelRun& run,
                                 const std::filesystem::path& folder, StartAt start,
                                 TrainingObserver& observer);

}  // namespace fovea
