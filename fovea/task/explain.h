// SPDX-License-Identifier: Apache-2.0
// Runs a model on one text or sample of numbers, and keeps what it looked at.
//
// Each function throws kModelWrongKind for a model that has nothing to show, kInputTooSmall for a
// text without a token, kShape for one that is too long, kEncoding, kOptionValue for options that
// do not fit the model or the text, kOutOfMemory, and kModelDamaged if the logits are not finite.
// The bits do not depend on the number of threads.
#pragma once

#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/frames.h"
#include "fovea/explain/explanation.h"
#include "fovea/report/features_page.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

struct LoadedClassifier;
struct LoadedLanguageModel;
struct LoadedTagger;
struct LoadedTranslator;

/// The text is cut as in training; with options.truncate its last tokens are kept.
Explanation explain_text(const Context& context, const LoadedLanguageModel& model,
                         std::string_view text, const ExplainOptions& options);

/// The text is plain, a sentence; or, if it has several lines or a tab, a sentence of CoNLL or (of
/// a model that learned from such) CoNLL-U, whose words alone are read: kInputFormat for broken
/// lines and several sentences. A segmenter reads characters.
Explanation explain_text(const Context& context, const LoadedTagger& model, std::string_view text,
                         const ExplainOptions& options);

/// The text is one line, else kInputFormat; the model writes what `fovea translate` prints by
/// default or, if there is one, the target of the options. A forward over both is observed: the
/// weights are those with which every token is written.
Explanation explain_text(const Context& context, const LoadedTranslator& model,
                         std::string_view text, const ExplainOptions& options);

/// The text is cut as in training. Without attention, gradients alone say what counts; where the
/// logits are linear in the embeddings, they are exact. A model of numbers has the wrong kind.
Explanation explain_text(const Context& context, const LoadedClassifier& model,
                         std::string_view text, const ExplainOptions& options);

/// Explains sample `sample` of a file, from 0, for a model of numbers: kOptionValue if the file has
/// no such sample, kInputFormat if it has other joints or features than the model.
Explanation explain_sample(const Context& context, const LoadedClassifier& model,
                           const FrameFile& file, index sample, const ExplainOptions& options);

/// The n-grams with the largest weights for each label of a linear model, `count` at most; of
/// numbers those for larger and for smaller ones. Throws kModelWrongKind for another model.
std::vector<LabelFeatures> top_features(const LoadedClassifier& model, index count);

/// Float32 arrays, a row for each sample of the set and a column for each of `steps` time steps
/// (the most that a sample has), with joints also an axis of these; 0 beyond the end of a sample
/// and where --max-length cuts it:
///
///   pooling      of attention as pooling: the weight of each row; those of a sample sum to 1
///   attention_N  of attention N of the encoder, from 0: the mean of the weights that a row gets
///                from the queries of its sequence, over all heads. Those of a sequence sum to 1:
///                of a sample over time, with joints of each joint over time, or, with :joints in
///                --encoder, of the joints of a time step
///   time         [samples, steps]  the share of each time step in `pooling`, or else in the last
///                attention over time; absent if there is neither
///   joints       [samples, joints] the share of each joint in `pooling`, or else in the last
///                attention over joints; absent if there is neither
///
/// The bits of a sample do not depend on the others. Throws kUsage for a model without attention.
std::vector<NamedTensor> frame_weights(const Context& context, const LoadedClassifier& model,
                                       const FrameSet& set, index steps);

}  // namespace fovea
