// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_stages.h"

#include "fovea/model/compat.h"

namespace fovea {

namespace {

using Kind = EncoderLayerKind;

std::vector<EncoderStage> transformer(const LanguageModelConfig& c) {
  std::vector<EncoderStage> stages;
  for (const index window : layer_windows(c)) {
    stages.push_back({{.kind = Kind::kTransformer, .window = window}});
  }
  return stages;
}

std::vector<EncoderStage> recurrent(const LanguageModelConfig& c, RecurrentKind cell) {
  return {{{.kind = Kind::kRecurrent, .cell = cell, .layers = c.layers}}};
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
      return {{{.kind = Kind::kAttentionRnn, .heads = c.heads, .window = only_window(c)}}};
    case LanguageModelKind::kRnn:
      return recurrent(c, RecurrentKind::kRnn);
    case LanguageModelKind::kGru:
      return recurrent(c, RecurrentKind::kGru);
    case LanguageModelKind::kLstm:
      return recurrent(c, RecurrentKind::kLstm);
    case LanguageModelKind::kSru:
      return recurrent(c, RecurrentKind::kSru);
    case LanguageModelKind::kEncoder:
      break;
  }
  return parse_encoder(c.encoder);
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
