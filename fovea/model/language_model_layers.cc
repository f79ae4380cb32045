// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_layers.h"

#include "fovea/model/language_model_stages.h"

namespace fovea {

LanguageModelLayers::LanguageModelLayers(const LanguageModelConfig& c, const ParameterScope& scope)
    : encoder_(encoder_of(c), sized_stages(c), scope,
               c.kind == LanguageModelKind::kTransformer ? "blocks" : "encoder") {
  if (c.tie) return;
  output_.emplace(LinearOptions{.in = encoder_.width(),
                                .out = c.vocabulary,
                                .bias = biases(c),
                                .weight = matrix_init(c, encoder_.width(), c.vocabulary),
                                .bias_start = bias_start(c)},
                  scope["output"]);
}

}  // namespace fovea
