// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_layers.h"

#include <algorithm>

#include "fovea/model/language_model_stages.h"
#include "fovea/model/layer_options.h"
#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

bool is_recurrent(const SizedLayer& layer) { return layer.spec.kind->is_recurrent; }

// The logits. The book's start from nearly nothing where they read a recurrent network; its
// Transformer's do not.
LinearOptions logits_options(const LanguageModelConfig& c, const SizedStage& last) {
  LinearOptions o{.in = last.out,
                  .out = c.vocabulary,
                  .bias = biases(c),
                  .weight = matrix_init(c, last.out, c.vocabulary),
                  .bias_start = bias_start(c)};
  if (c.init == InitScheme::kSource && std::ranges::all_of(last.branches, is_recurrent)) {
    o.weight = Init::normal(kSourceRnnDeviation);
    o.bias_start = BiasStart::kZeros;
  }
  return o;
}

}  // namespace

LanguageModelLayers::LanguageModelLayers(const LanguageModelConfig& c, const ParameterScope& scope)
    : encoder_(encoder_of(c), sized_stages(c), scope,
               c.kind == LanguageModelKind::kTransformer ? "blocks" : "encoder") {
  if (!c.tie) output_.emplace(logits_options(c, sized_stages(c).back()), scope["output"]);
}

}  // namespace fovea
