// SPDX-License-Identifier: Apache-2.0
// Runs a language model on one text, and keeps what it looked at.
#pragma once

#include <string_view>

#include "fovea/base/context.h"
#include "fovea/explain/explanation.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// The text is cut as in training. Throws kModelWrongKind for a model without attention,
/// kInputTooSmall for a text without a token, kShape for one that is longer than the model's block
/// (unless options.truncate), kEncoding, kOptionValue for options that do not fit the model,
/// kOutOfMemory, and kModelDamaged if the logits are not finite. The bits do not depend on the
/// number of threads.
Explanation explain_text(const Context& context, const LoadedLanguageModel& model,
                         std::string_view text, const ExplainOptions& options);

}  // namespace fovea
