// SPDX-License-Identifier: Apache-2.0
// The training of a translator: preparing, what it costs, and training itself.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/parallel/pair_reader.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/training_task.h"
#include "fovea/task/translate/translator.h"

namespace fovea {

/// A run that is ready to begin: the pairs are read, the vocabularies known, every size filled in.
struct TranslatorRun {
  TranslatorSettings settings;
  std::vector<std::string> overview;  ///< a summary of the pairs for people, a line each
  std::vector<std::string> notes;     ///< warnings about them
  TranslatorVocabulary vocabulary;
  std::unique_ptr<PairTraining> training;
  std::optional<PairEvaluation> validation;
  SentencePairs validation_texts;         ///< of `validation`, in its order
  std::optional<PairEvaluation> trained;  ///< the training pairs, if they are measured, too
  RunIdentity identity;
};

/// Checks all options, reads the pairs, and learns the vocabularies unless `known` is given. Writes
/// nothing. Throws kOptionValue, kUsage without a file to train on, what read_pairs() throws,
/// kInputTooSmall if no pair is left.
TranslatorRun prepare_run(TranslatorSettings settings,
                          std::optional<TranslatorVocabulary> known = {});

/// The cost of a run, computed before it begins.
RunCost cost_of(const TranslatorRun& run);
/// FLOPs (multiplications and additions) of the mean update, by a plan of sequences as long as
/// those of the data.
double flops_of_update(const Context& context, const TranslatorRun& run);

/// The most bytes that this process will have resident while it trains; see training_memory() of
/// language models.
double training_memory(const Context& context, const TranslatorRun& run,
                       index checkpoint_bytes = 0);

RunTime estimate_run_time(const Context& context, const TranslatorRun& run,
                          const RunState& done = {});

/// Makes settings that follow from the data those that the run began with, which are
/// resolved.
void keep_found(TranslatorSettings& given, const TranslatorSettings& began);
/// See RunFiles.
RunFiles files_of(const TranslatorTextOptions& text);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabularies first.
/// Throws also what Trainer::resume does.
TrainResult train_translator(const Context& context, const TranslatorRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer);

}  // namespace fovea
