// SPDX-License-Identifier: Apache-2.0
// Trains a language model on text files, into a model folder, loads a model from such a folder, and
// forecasts the memory, FLOPs and time of training, evaluating and generating.
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
#include "fovea/pretrained/pretrained.h"
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
  /// What a model from elsewhere says of its texts; nothing for one that fovea has trained.
  std::optional<PretrainedText> pretrained = {};
};

/// Reads config.json alone. Throws kModelMissing if there is none, kModelDamaged, and
/// kModelWrongKind for a model of another kind.
LanguageModelSettings load_settings(const std::filesystem::path& folder);
/// Loads a model: a folder, or a model from elsewhere. Throws as load_settings() and
/// load_pretrained() do, and kModelDamaged if the files of a folder do not belong together.
LoadedLanguageModel load_language_model(const std::filesystem::path& path,
                                        const PretrainedOptions& options = {});

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

/// The most bytes that this process will have resident while it trains: what it holds now, and what
/// training, evaluations and saves add. Excludes the records of a run that ends by hours, as their
/// number is not known. `checkpoint_bytes`: the part of the memory held now that is the checkpoint
/// to resume from.
double training_memory(const Context& context, const LanguageModelRun& run,
                       index checkpoint_bytes = 0);

/// The updates that are left after `done`, plus the evaluations, each counted as the number of
/// updates that take as long.
double updates_to_come(const LanguageModelRun& run, const RunState& done = {});

/// An estimate of the time that is left after `done`; it takes about half a second. If updates are
/// short and the model is made quickly, some updates of a model of the same shape are timed.
/// Otherwise the time is computed from FLOPs and parameters, with the measured speed of the
/// machine's multiply-adds and memory. A run that ends by hours takes the rest of those.
RunTime estimate_run_time(const Context& context, const LanguageModelRun& run,
                          const RunState& done = {});

/// FLOPs (multiplications and additions) of an update, by a plan of its batches.
double flops_of_update(const Context& context, const LanguageModelRun& run);

/// Throws kOutOfMemory unless there is memory for the tokens of a text and the sequences cut from
/// them. The text itself is in memory already.
void require_token_memory(std::string_view text, const Tokenizer& tokenizer, index block);

/// Bytes that an evaluation of the set takes besides the model.
double evaluation_memory(const Context& context, const LanguageModelConfig& config,
                         const EvaluationBatches& set);

/// Bytes that a decoder takes besides the model for `prompt` tokens and up to `max_tokens` more.
double generation_memory(const Context& context, const LanguageModelConfig& config, index prompt,
                         index max_tokens);

}  // namespace fovea
