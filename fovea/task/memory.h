// SPDX-License-Identifier: Apache-2.0
// Predicts how much memory a task will take.
#pragma once

#include "fovea/task/language_model.h"

namespace fovea {

/// The most bytes that this process will have resident while it trains: what it holds now, and what
/// training, evaluations and saves add. Excludes the records of a run that ends by hours, as their
/// number is not known. `checkpoint_bytes`: the part of the memory held now that is the checkpoint
/// to resume from.
double training_memory(const Context& context, const LanguageModelRun& run,
                       index checkpoint_bytes = 0);

/// Throws kOutOfMemory unless there is memory for the tokens of a text and the sequences cut from
/// them. The text itself is in memory already.
void require_token_memory(std::string_view text, const Tokenizer& tokenizer, index block);

/// Bytes of the values of a model.
double model_memory(const LanguageModelConfig& config);

/// Bytes that an evaluation of the set takes besides the model.
double evaluation_memory(const Context& context, const LanguageModelConfig& config,
                         const EvaluationBatches& set);

/// Bytes that a decoder takes besides the model for `prompt` tokens and up to `max_tokens` more.
double generation_memory(const Context& context, const LanguageModelConfig& config, index prompt,
                         index max_tokens);

}  // namespace fovea
