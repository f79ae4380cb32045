// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/layers.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace fovea {

namespace {

using Kind = EncoderLayerKind;

bool has_attention(Kind kind) {
  return kind == Kind::kTransformer || kind == Kind::kAttention || kind == Kind::kAttentionRnn;
}

bool mixes_otherwise(const SizedLayer& layer) {
  const Kind kind = layer.spec.kind;
  return kind == Kind::kRecurrent || kind == Kind::kConvolution || kind == Kind::kAttentionRnn;
}

std::vector<AttentionLayerName> layers_named(std::string_view name,
                                             const std::vector<SizedStage>& stages) {
  std::vector<AttentionLayerName> layers;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (!has_attention(layer.spec.kind)) continue;
      for (index n = 0; n < layer.spec.layers; ++n) {
        layers.push_back(
            {.name = fmt::format("{} {} ({}{})", name, layers.size() + 1, layer_name(layer.spec),
                                 layer.spec.joints ? ":joints" : ""),
             .heads = layer.spec.heads,
             .residual = layer.spec.residual.value_or(false),
             .side_by_side = stage.branches.size() > 1,
             .across = layer.spec.joints});
      }
    }
  }
  return layers;
}

}  // namespace

std::vector<AttentionLayerName> attention_layers(const std::vector<SizedStage>& stages) {
  return layers_named("layer", stages);
}

std::vector<AttentionLayerName> attention_layers(const TranslatorConfig& config) {
  std::vector<AttentionLayerName> layers = layers_named("encoder", encoder_stages(config));
  if (config.kind == TranslatorKind::kBahdanauGru) {
    layers.push_back(
        {.name = "decoder (additive attention)", .heads = 1, .place = AttentionPlace::kCross});
    return layers;
  }
  for (index n = 1; n <= config.decoder_layers; ++n) {
    const auto add = [&](std::string_view what, AttentionPlace place) {
      layers.push_back({.name = fmt::format("decoder {} ({})", n, what),
                        .heads = config.heads,
                        .residual = true,
                        .place = place});
    };
    add("self-attention", AttentionPlace::kDecoder);
    add("cross-attention", AttentionPlace::kCross);
  }
  return layers;
}

bool has_other_mixing(const std::vector<SizedStage>& stages) {
  return std::any_of(stages.begin(), stages.end(), [](const SizedStage& stage) {
    return std::any_of(stage.branches.begin(), stage.branches.end(), mixes_otherwise);
  });
}

}  // namespace fovea
