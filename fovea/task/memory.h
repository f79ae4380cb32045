// SPDX-License-Identifier: Apache-2.0
// How much memory a task will take, told before it takes it.
#pragma once

#include "fovea/task/language_model.h"

namespace fovea {

/// The most bytes that this process will have resident while it trains: what it holds now, and what
/// training, evaluations and saves add. Without the records of a run that ends by hours, whose
/// number nobody knows. `checkpoint_bytes`: what of its memory is a checkpoint that it begins with.
double training_memory(const Context& context, const LanguageModelRun& run,
                       index checkpoint_bytes = 0);

/// What a model's values take.
double model_memory(const LanguageModelConfig& config);

/// What the model's passes over the set take beside the model.
double evaluation_memory(const Context& context, const LanguageModelConfig& config,
                         const EvaluationBatches& set);

/// What a decoder takes beside the model for `prompt` tokens and those that follow.
double generation_memory(const Context& context, const LanguageModelConfig& config, index prompt,
                         index max_tokens);

}  // namespace fovea
