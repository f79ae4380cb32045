// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_stages.h"

#include "fovea/model/compat.h"
#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

// The kinds of models but encoder are named as the layers that they are made of.
const LayerKind* layer_of(const LanguageModelConfig& c) { return &layer_kind(to_string(c.kind)); }

std::vector<EncoderStage> transformer(const LanguageModelConfig& c) {
  std::vector<EncoderStage> stages;
  for (const index window : layer_windows(c)) {
    stages.push_back({{.kind = layer_of(c), .window = window}});
  }
  return stages;
}

// The one window of --window.
index only_window(const LanguageModelConfig& c) {
  LanguageModelConfig one = c;
  one.layers = 1;
  return layer_windows(one)[0];
}

std::vector<EncoderStage> stages_of(const LanguageModelConfig& c) {
  switch (c.kind) {
    case LanguageModelKind::kTransformer:
      return transformer(c);
    case LanguageModelKind::kAttentionRnn:
      return {{{.kind = layer_of(c), .heads = c.heads, .window = only_window(c)}}};
    case LanguageModelKind::kEncoder:
      return parse_encoder(c.encoder);
    default:  // recurrent layers
      return {{{.kind = layer_of(c), .layers = c.layers}}};
  }
}

}  // namespace

std::vector<SizedStage> sized_stages(const LanguageModelConfig& c) {
  return size_stages(c, stages_of(c));
}

EncoderConfig encoder_of(const LanguageModelConfig& config) {
  EncoderConfig encoder = config;
  const Compat compat = compat_of(config);
  encoder.attention_rnn_defects = compat.attention_rnn;
  if (compat.ln_unbiased) encoder.ln_variant = LayerNormVariant::kUnbiased;
  encoder.token_rows = config.tie ? RowUse::kDense : RowUse::kSparse;
  return encoder;
}

}  // namespace fovea
