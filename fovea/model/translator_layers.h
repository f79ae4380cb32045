// SPDX-License-Identifier: Apache-2.0
// The layers of a translator: an encoder, a decoder, and the projection to the logits of the next
// token.
#pragma once

#include <memory>
#include <optional>

#include "fovea/model/target_decoder.h"
#include "fovea/model/text_encoder.h"
#include "fovea/model/translator_config.h"
#include "fovea/nn/linear.h"

namespace fovea {

/// `config` must be resolved. Parameters, in this order: encoder.* of TextEncoder, with the layers
/// of a Transformer called encoder.blocks.N.*, others encoder.layers.N.*; decoder.* of TextDecoder
/// or RecurrentDecoder, without a table of its own where embeddings are shared; output.weight
/// [target vocabulary, C] (unless tied) and output.bias (untied models with biases).
class TranslatorLayers {
 public:
  TranslatorLayers(const TranslatorConfig& config, const ParameterScope& scope);

  const TextEncoder& encoder() const { return encoder_; }
  const TargetDecoder& decoder() const { return *decoder_; }
  Parameter& output_weight() const { return output_ ? output_->weight() : decoder_->tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : nullptr; }

 private:
  TextEncoder encoder_;
  std::unique_ptr<const TargetDecoder> decoder_;
  std::optional<Linear> output_;
};

}  // namespace fovea
