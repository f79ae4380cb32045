// SPDX-License-Identifier: Apache-2.0
// The layers of a language model: a text encoder, and the projection to the logits of the next
// token.
#pragma once

#include <optional>

#include "fovea/model/language_model_config.h"
#include "fovea/model/text_encoder.h"

namespace fovea {

/// `config` must be resolved. Parameters, in this order: those of TextEncoder, with the layers of a
/// Transformer called blocks.N.*; output.weight [V, C] (unless tied) and output.bias [V] (untied
/// models with biases).
class LanguageModelLayers {
 public:
  LanguageModelLayers(const LanguageModelConfig& config, const ParameterScope& scope);

  /// Its last rows [N, C] are those from which the next tokens are predicted.
  const TextEncoder& encoder() const { return encoder_; }
  Parameter& output_weight() const { return output_ ? output_->weight() : encoder_.tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : nullptr; }

 private:
  TextEncoder encoder_;
  std::optional<Linear> output_;
};

}  // namespace fovea
