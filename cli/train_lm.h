// SPDX-License-Identifier: Apache-2.0
// Options of train lm that bench step has, too.
#pragma once

#include <string>
#include <vector>

#include "fovea/model/language_model_config.h"

namespace fovea::cli {

/// A model that is no Transformer has no positions, one layer and, if it is an attention RNN, one
/// head, unless `set`, the names of the fields that were given, has them. A field that means
/// nothing to the model keeps its default: throws kOptionValue if it was given another value.
void take_usual_sizes(LanguageModelConfig& model, const std::vector<std::string>& set);

}  // namespace fovea::cli
