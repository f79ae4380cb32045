// SPDX-License-Identifier: Apache-2.0
// Runs a tagger or a segmenter over a test set.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/tagged/tagged_reader.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/task/tag/score.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

struct TaggerTestOptions {
  TaggedOptions table = {};  ///< how the files are read
  index mistakes = 0;        ///< how many of the worst sentences to keep
  BootstrapOptions bootstrap = {};
};

/// The scores of the sentences of all files, in each tag column of the model. Spans are those that
/// conlleval reads, of tags of any scheme: those of the files need not have the model's. Appends
/// what a user may want to know to `notes`.
///
/// Throws as TaggedReader does, kInputFormat ("FILE:LINE: ...") for a tag that is none of a scheme
/// where the model's tags mark spans, kModelDamaged, kOptionValue (also for another number of tag
/// columns).
std::vector<TaggerScore> evaluate_tagger(const Context& context, const LoadedTagger& model,
                                         std::span<const std::string> files,
                                         const TaggerTestOptions& options,
                                         std::vector<std::string>& notes);

}  // namespace fovea
