// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

std::vector<AttentionLayerName> layers_named(std::string_view name,
                                             const std::vector<SizedStage>& stages) {
  std::vector<AttentionLayerName> layers;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (!layer.spec.kind->shows_heads) continue;
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

std::vector<AttentionLayerName> attention_layers(const BertConfig& config) {
  std::vector<AttentionLayerName> layers;
  for (index n = 1; n <= config.layers; ++n) {
    layers.push_back({.name = fmt::format("layer {} (transformer)", n),
                      .heads = config.heads,
                      .residual = true});
  }
  return layers;
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

Words exact_sum_note(const Saliency& saliency) {
  const auto [value, bias] = *saliency.exact;
  const double sum = std::accumulate(saliency.values.begin(), saliency.values.end(), 0.0);
  const Words of = filled(saliency.of, QuoteLength::kShort);
  return {fmt::format("The model is linear, so this is exact: what the tokens add to {} is {:.4g}, "
                      "and with {:.4g}, which belongs to no token, it is {:.4g}.",
                      of.english, sum, bias, value),
          fmt::format("模型是线性的，因此这是精确的：各词元对{}的贡献之和为 {:.4g}，加上不属于任何"
                      "词元的 {:.4g}，等于 {:.4g}。",
                      of.chinese, sum, bias, value)};
}

bool has_other_mixing(const std::vector<SizedStage>& stages) {
  return std::any_of(stages.begin(), stages.end(), [](const SizedStage& stage) {
    return std::any_of(stage.branches.begin(), stage.branches.end(),
                       [](const SizedLayer& layer) { return layer.spec.kind->mixes; });
  });
}

}  // namespace fovea
