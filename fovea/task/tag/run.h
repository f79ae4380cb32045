// SPDX-License-Identifier: Apache-2.0
// The training of a tagger: preparing, what it costs, and training itself.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/tagged/tagged_batch.h"
#include "fovea/data/word_vectors.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/task/training_task.h"

namespace fovea {

/// A run that is ready to begin: the sentences are read, the vocabulary and tags known, every size
/// filled in.
struct TaggerRun {
  TaggerSettings settings;
  TaggerOutputs outputs;
  std::vector<TagSet> tags;           ///< of each tag column
  std::vector<std::string> overview;  ///< a summary of the sentences for people, a line each
  std::vector<std::string> notes;     ///< warnings about them
  TaggerVocabulary vocabulary;
  std::unique_ptr<TaggedTraining> training;
  std::optional<TaggedEvaluation> validation;
  std::optional<TaggedEvaluation> trained;  ///< the training sentences, if they are measured, too
  std::optional<WordVectors> vectors;       ///< [vocabulary], with which rows of its table start
  RunIdentity identity;
};

/// Checks all options, reads the sentences, and learns the vocabulary unless `known` is given.
/// Writes nothing. Throws kOptionValue, kUsage, what read_tagged_set and read_word_vectors throw.
TaggerRun prepare_run(TaggerSettings settings, std::optional<TaggerVocabulary> known = {},
                      RunWeights weights = RunWeights::kNew);

/// The cost of a run, computed before it begins.
RunCost cost_of(const TaggerRun& run);
/// FLOPs (multiplications and additions) of the mean update, by a plan of sequences as long as
/// those of the data.
double flops_of_update(const Context& context, const TaggerRun& run);

/// The most bytes that this process will have resident while it trains; see training_memory() of
/// language models.
double training_memory(const Context& context, const TaggerRun& run, index checkpoint_bytes = 0);

RunTime estimate_run_time(const Context& context, const TaggerRun& run, const RunState& done = {});

/// Makes settings that follow from the data those that the run began with.
void keep_found(TaggerTextOptions& given, const TaggerTextOptions& began);
/// The same for all; `began` is resolved.
void keep_found(TaggerSettings& given, const TaggerSettings& began);

/// Trains in `folder`, which exists. A new run writes config.json and its vocabulary first. Throws
/// also what Trainer::resume does.
TrainResult train_tagger(const Context& context, const TaggerRun& run,
                         const std::filesystem::path& folder, StartAt start,
                         TrainingObserver& observer);

}  // namespace fovea
