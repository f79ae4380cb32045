// SPDX-License-Identifier: Apache-2.0
// Explains what a translator writes of a text.
#pragma once

#include <string_view>

#include "fovea/base/context.h"
#include "fovea/explain/explanation.h"
#include "fovea/task/translate/translator.h"

namespace fovea {

/// The text is one line; the model writes what `fovea translate` prints by default or, if there is
/// one, the target of the options. A forward over both is observed: the weights are those with
/// which every token is written. Throws kInputTooSmall for a text without a token, kInputFormat for
/// several lines, kShape for a text that is too long, kEncoding, kOptionValue for options that do
/// not fit the model or a target that is empty or too long, kOutOfMemory, and kModelDamaged if the
/// logits are not finite. The bits do not depend on the number of threads.
Explanation explain_text(const Context& context, const LoadedTranslator& model,
                         std::string_view text, const ExplainOptions& options);

}  // namespace fovea
