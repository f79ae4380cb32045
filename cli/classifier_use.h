// SPDX-License-Identifier: Apache-2.0
// Shared by the commands that use a trained classifier.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/task/classify/classifier.h"

namespace fovea::cli {

/// Throws kUsage if one of the options that were said has no effect on such a model. `command`
/// begins the message.
void require_effect(std::string_view command, const std::vector<std::string>& said,
                    const LoadedClassifier& model);

/// Warns that `truncated` of `all` texts (or samples) were longer than the model's --max-length.
void warn_of_truncated(const LoadedClassifier& model, index truncated, index all);

}  // namespace fovea::cli
