// SPDX-License-Identifier: Apache-2.0
// Runs a classifier on one text or sample of numbers, and keeps what it looked at.
#pragma once

#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/frames.h"
#include "fovea/explain/explanation.h"
#include "fovea/report/features_page.h"
#include "fovea/task/classify/classifier.h"

namespace fovea {

/// The text is cut as in training. Without attention, gradients alone say what counts; where the
/// logits are linear in the embeddings, they are exact. Throws kModelWrongKind for a model of
/// numbers, kInputTooSmall for a text without a token, kEncoding, kOptionValue for options that do
/// not fit the model, kOutOfMemory, and kModelDamaged if the logits are not finite. The bits do not
/// depend on the number of threads.
Explanation explain_text(const Context& context, const LoadedClassifier& model,
                         std::string_view text, const ExplainOptions& options);

/// Explains sample `sample` of a file, from 0, for a model of numbers: kOptionValue if the file has
/// no such sample, kInputFormat if it has other joints or features than the model.
Explanation explain_sample(const Context& context, const LoadedClassifier& model,
                           const FrameFile& file, index sample, const ExplainOptions& options);

/// The n-grams with the largest weights for each label of a linear model, `count` at most; of
/// numbers those for larger and for smaller ones. Throws kModelWrongKind for another model.
std::vector<LabelFeatures> top_features(const LoadedClassifier& model, index count);

}  // namespace fovea
