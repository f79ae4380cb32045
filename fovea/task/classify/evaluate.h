// SPDX-License-Identifier: Apache-2.0
// Runs a classifier over a test set.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/table/table_options.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/score.h"

namespace fovea {

struct ClassifierTestOptions {
  TableOptions table = {};  ///< how the files are read; `labels` is not read
  double threshold = 0.5;
  index mistakes = 0;  ///< how many of the worst to keep, with their texts
  BootstrapOptions bootstrap = {};
};

/// The score of the rows of all files. Takes memory for the predictions, and for the texts of a
/// window and of the worst mistakes. Appends the readers' notes to `notes`.
///
/// Throws as LabelledReader does, kEmptyInput without a row, kInputFormat ("FILE:LINE: ...") for a
/// label that the model does not know or more labels than a text may have, kModelDamaged for
/// predictions that are not finite, kOptionValue.
ClassifierScore evaluate_classifier(const Context& context, const LoadedClassifier& model,
                                    std::span<const std::string> files,
                                    const ClassifierTestOptions& options,
                                    std::vector<std::string>& notes);

}  // namespace fovea
