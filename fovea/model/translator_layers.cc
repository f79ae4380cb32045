// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/translator_layers.h"

#include "fovea/model/layer_options.h"
#include "fovea/model/recurrent_decoder.h"
#include "fovea/model/text_decoder.h"

namespace fovea {

namespace {

std::unique_ptr<const TargetDecoder> make_decoder(const TranslatorConfig& c,
                                                  const TextEncoder& encoder,
                                                  const ParameterScope& scope) {
  Parameter* const tokens = c.share_embeddings ? &encoder.tokens() : nullptr;
  if (c.kind == TranslatorKind::kBahdanauGru) {
    return std::make_unique<RecurrentDecoder>(decoder_of(c), encoder.width(), tokens, scope);
  }
  const TextDecoderOptions options{
      .layers = c.decoder_layers, .source_width = encoder.width(), .tokens = tokens};
  return std::make_unique<TextDecoder>(decoder_of(c), options, scope);
}

}  // namespace

TranslatorLayers::TranslatorLayers(const TranslatorConfig& c, const ParameterScope& scope)
    : encoder_(encoder_of(c), encoder_stages(c), scope["encoder"],
               c.encoder.empty() ? "blocks" : "layers"),
      decoder_(make_decoder(c, encoder_, scope["decoder"])) {
  if (c.tie) return;
  output_.emplace(LinearOptions{.in = c.width,
                                .out = c.target_vocabulary,
                                .bias = biases(c),
                                .weight = matrix_init(c, c.width, c.target_vocabulary),
                                .bias_start = bias_start(c)},
                  scope["output"]);
}

}  // namespace fovea
