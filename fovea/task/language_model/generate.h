// SPDX-License-Identifier: Apache-2.0
// Generates text from a language model, token by token.
#pragma once

#include <functional>
#include <string_view>

#include "fovea/task/decode/sampling.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// Throws kOutOfMemory unless there is memory for generate_text, kEncoding for a prompt that the
/// tokenizer cannot encode.
void require_generation_memory(const Context& context, const LoadedLanguageModel& loaded,
                               std::string_view prompt, const SamplingOptions& options);

/// The tokens with which a model begins: those of the prompt, behind the mark of a line if the
/// model knows lines; for an empty prompt those of a newline if not. Throws kInputTooSmall if there
/// are none, kEncoding.
std::vector<token> prompt_tokens(const LoadedLanguageModel& loaded, std::string_view prompt);

/// The tokens that were never a target in training, in ascending order: their logits mean nothing.
std::vector<token> never_trained(const LoadedLanguageModel& loaded);

/// The words of a prompt that the model does not know: it reads them all as the same unknown word.
index unknown_words(const LoadedLanguageModel& loaded, std::string_view prompt);

/// Continues `prompt` and passes the continuation to `write` as it is generated, in whole
/// characters; `write` returns false to stop, and is called at least once. Returns how many tokens
/// were chosen. It ends after max_tokens. A model trained with --data lines takes the prompt as the
/// beginning of a line, and also ends at the end of a line if lines had marks. For a model trained
/// with --data blocks, an empty prompt is replaced by a newline. The text depends only on the
/// model, the prompt and the options. Throws kOptionValue for the options, kInputTooSmall for a
/// prompt without a token where the model has no mark to begin with, and as
/// require_generation_memory does.
index generate_text(const Context& context, const LoadedLanguageModel& loaded,
                    std::string_view prompt, const SamplingOptions& options,
                    const std::function<bool(std::string_view)>& write);

}  // namespace fovea
