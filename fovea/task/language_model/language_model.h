// SPDX-License-Identifier: Apache-2.0
// Trains a language model on text files, into a model folder, and loads a model from such a folder.
//
// A model folder holds config.json, tokenizer.txt and model.safetensors, and vocab.txt if its
// tokens are words (for people: it is not read); a run folder also the files of Trainer. A
// checkpoint is a model folder, too.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/data/batcher.h"
#include "fovea/model/language_model.h"
#include "fovea/task/language_model/settings.h"
#include "fovea/task/training_task.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// config.json: "kind" of a language model.
inline constexpr std::string_view kLanguageModelKind = "language_model";

struct LoadedLanguageModel {
  LanguageModelSettings settings;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<LanguageModel> model;
};

/// Reads config.json alone. Throws kModelMissing if there is none, kModelDamaged, and
/// kModelWrongKind for a model of another kind.
LanguageModelSettings load_settings(const std::filesystem::path& folder);
/// Loads a model. Throws as load_settings does, and kModelDamaged if the files do not belong
/// together.
LoadedLanguageModel load_language_model(const std::filesystem::path& folder);

/// The text of config.json, and the settings from that text; `name` is the file's name in errors.
std::string config_text(const LanguageModelSettings& settings);
LanguageModelSettings settings_from_text(std::string_view text, const std::string& name);

/// A run that is ready to begin: the text is read and cut, the vocabulary known, every size filled
/// in.
struct LanguageModelRun {
  LanguageModelSettings settings;
  std::vector<std::string> notes;  ///< about the text
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<TrainingBatches> training;
  std::optional<EvaluationBatches> validation;
  RunIdentity identity;
  std::size_t text_bytes = 0;
};

/// Checks all options, reads the text, and learns the tokenizer unless `known` is given. Writes
/// nothing.
LanguageModelRun prepare_run(LanguageModelSettings settings,
                             std::unique_ptr<Tokenizer> known = nullptr);

/// The cost of a run, computed before it begins.
RunCost cost_of(const LanguageModelRun& run);

/// Makes settings that follow from the data those that the run began with.
void keep_found(LanguageModelSettings& given, const LanguageModelSettings& began);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabulary first. Throws
/// also what Trainer::resume does.
TrainResult train_language_model(const Context& context, const LanguageModelRun& run,
                                 const std::filesystem::path& folder, StartAt start,
                                 TrainingObserver& observer);

}  // namespace fovea
