// SPDX-License-Identifier: Apache-2.0
// Small language models of layers that are no Transformer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/model/language_model.h"
#include "tests/model/support.h"

namespace fovea {

inline LanguageModelConfig config(LanguageModelKind kind, std::string encoder = {}) {
  LanguageModelConfig c = small_config();
  c.kind = kind;
  c.encoder = std::move(encoder);
  c.position = PositionKind::kNone;
  return c;
}

inline LanguageModelConfig encoder(std::string layers) {
  return config(LanguageModelKind::kEncoder, std::move(layers));
}

inline std::vector<SizedStage> stages(const LanguageModelConfig& c) {
  return sized_stages(resolve(c));
}

}  // namespace fovea
