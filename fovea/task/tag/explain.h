// SPDX-License-Identifier: Apache-2.0
// Runs a tagger or a segmenter on one sentence and keeps what it looked at.
#pragma once

#include <string_view>

#include "fovea/base/context.h"
#include "fovea/explain/explanation.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

/// The text is plain, a sentence; or, if it has several lines or a tab, a sentence of CoNLL or (of
/// a model that learned from such) CoNLL-U, whose words alone are read. A segmenter reads
/// characters.
///
/// Throws kModelWrongKind for a model without attention, kInputTooSmall for a text without a word,
/// kInputFormat for broken lines and several sentences, kEncoding, kShape for a sentence longer
/// than the model's max_length, kOptionValue for options that do not fit the model or the sentence,
/// kOutOfMemory, and kModelDamaged if the scores are not finite. The bits do not depend on the
/// number of threads.
Explanation explain_text(const Context& context, const LoadedTagger& model, std::string_view text,
                         const ExplainOptions& options);

}  // namespace fovea
