// SPDX-License-Identifier: Apache-2.0
// What training, evaluating and generating with a language model will take: memory, FLOPs and time.
#pragma once

#include "fovea/task/language_model/language_model.h"

namespace fovea {

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
