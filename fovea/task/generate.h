// SPDX-License-Identifier: Apache-2.0
// Text from a language model, token by token.
#pragma once

#include <functional>
#include <string_view>

#include "fovea/task/decode/sampling.h"
#include "fovea/task/language_model.h"

namespace fovea {

/// Throws kOutOfMemory unless there is room for generate_text. Throws kEncoding for the prompt.
void require_generation_memory(const Context& context, const LoadedLanguageModel& loaded,
                               std::string_view prompt, const SamplingOptions& options);

/// Continues `prompt` and hands over the continuation as it is made, in whole characters; `write`
/// returns false to stop. Returns how many tokens were chosen. Ends, unless it is stopped, after
/// max_tokens, or where a model of lines ends its line; `write` is called once at least. A
/// model of lines begins a line with the prompt; a model of blocks without a prompt begins one,
/// too. The text is a function of the model, the prompt and the options. Throws kOptionValue for
/// the options, and as require_generation_memory does.
index generate_text(const Context& context, const LoadedLanguageModel& loaded,
                    std::string_view prompt, const SamplingOptions& options,
                    const std::function<bool(std::string_view)>& write);

}  // namespace fovea
