// SPDX-License-Identifier: Apache-2.0
// Shared by the explanations of all kinds of models.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/view.h"
#include "fovea/explain/explanation.h"
#include "fovea/model/encoder_sizes.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// In quotes, escaped.
std::string in_quotes(std::string_view text, QuoteLength length = QuoteLength::kShort);

/// "it has a, b, c": at most eight of the names.
std::string it_has(std::span<const std::string> names);

/// Throws kModelWrongKind.
void require_attention(bool has_attention, std::string_view what = "model",
                       std::string_view hint =
                           "train one with attention or textcnn in --encoder, with "
                           "--pooling attention, or a language model with --model transformer");

/// Throws kInputTooSmall.
void require_tokens(bool has_tokens);

/// Throws kOutOfMemory unless there is memory for the tokens of the text.
void require_token_memory(const Tokenizer& tokenizer, std::string_view text);

/// Throws kOptionValue for a target of a saliency that has none.
void require_target_counts(const ExplainOptions& options);

/// Returns f(). An error of it may have a hint that names an option of another command, whose
/// reading code it shares: `explain` gives this hint instead.
template <class F>
auto with_own_hint(std::string hint, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.hint().find("--") == std::string::npos) throw;
    throw Error(error.code(), error.what(), std::move(hint));
  }
}

/// The numbers of the values, the largest first; of equal ones the first.
std::vector<index> descending(Vec<const float> values);

/// Adds what rollout leaves out of such a model, if it does.
void note_rollout(const std::vector<SizedStage>& stages, Explanation& explanation);

}  // namespace fovea
