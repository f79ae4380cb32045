// SPDX-License-Identifier: Apache-2.0
// An explanation of numbers, made by hand.
#pragma once

#include <string>

#include "fovea/explain/explanation.h"

namespace fovea {

// Three time steps, from 4 on, of two joints: attention over time and over joints, two heads each.
inline Explanation sample_explanation() {
  Explanation e{.kind = {"classifier of numbers", "数值分类器"},
                .tokens = {"4", "5", "6"},
                .cut = 4,
                .pooling = {.1F, .2F, .1F, .2F, .1F, .3F},
                .prediction = {{"wave", .75}, {"push", .25}},
                .saliency = {SaliencyMethod::kGradientInput,
                             {"the logit of \"wave\"", "\"wave\" 的 logit"},
                             {.25F, -.5F, 0, .125F, 0, .5F}},
                .numbers = ExplainedSample{7, 4, 2}};
  const auto layer = [](const std::string& name, index sequences, std::size_t n, bool across) {
    ExplainedLayer made{.name = name,
                        .heads = 2,
                        .queries = static_cast<index>(n),
                        .keys = static_cast<index>(n),
                        .entropy = {.5, .25},
                        .largest = {1, 1},
                        .sequences = sequences,
                        .across = across};
    if (!across) made.distance = {1, 2};
    for (index block = 0; block < 2 * sequences; ++block) {
      for (std::size_t cell = 0; cell < n * n; ++cell) {
        made.weights.push_back(cell % (n + 1) == 0 ? 1.0F : 0.0F);
      }
    }
    return made;
  };
  e.layers = {layer("layer 1 (attention)", 2, 3, false),
              layer("layer 2 (attention:joints)", 3, 2, true)};
  return e;
}

}  // namespace fovea
