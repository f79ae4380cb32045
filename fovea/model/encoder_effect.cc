// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_effect.h"

#include <algorithm>

#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

// A layer as the text says it, and with its sizes.
struct Layer {
  const EncoderLayerSpec& said;
  const EncoderLayerSpec& sized;
  bool is_alone;  // not side by side with others, which are joined by a product
};

bool attends(const Layer& layer) { return layer.said.kind->attends; }
bool takes_heads(const Layer& layer) { return attends(layer) && layer.said.heads == 0; }
bool takes_position(const Layer& layer) { return attends(layer) && !layer.said.position; }

bool feeds_forward(const Layer& layer) { return layer.said.kind->feeds_forward; }
bool takes_ff(const Layer& layer) { return feeds_forward(layer) && layer.said.ff == 0; }
bool takes_activation(const Layer& layer) { return feeds_forward(layer) && !layer.said.activation; }

bool has_norm(const Layer& layer) { return *layer.sized.residual; }
bool has_bias(const Layer& layer) {
  return attends(layer) || feeds_forward(layer) || has_norm(layer) || !layer.is_alone;
}

bool has_t5(const Layer& layer) {
  return attends(layer) && part_tensor(*layer.sized.position) == "t5";
}
bool has_shaw(const Layer& layer) {
  return attends(layer) && learns_tensor(*layer.sized.position, "shaw_k");
}
bool has_lstm(const Layer& layer) { return layer.said.kind->cell == RecurrentKind::kLstm; }
bool has_rotary(const Layer& layer) {
  return attends(layer) && *layer.sized.position == PositionKind::kRotary;
}

// The layers on which a setting has an effect.
struct Effect {
  std::string_view field;
  bool (*is_on)(const Layer&);
  std::string_view needs;
};

constexpr std::string_view kAttention = "an attention layer in --encoder";
constexpr std::string_view kHeads = "an attention layer in --encoder without heads= of its own";
constexpr std::string_view kT5 = "--position t5 and an attention layer in --encoder";
constexpr std::string_view kNorm = "a layer with a residual sum in --encoder";

constexpr Effect kEffects[] = {
    {"heads", takes_heads, kHeads},
    {"kv_heads", takes_heads, kHeads},
    {"head_dim", takes_heads, kHeads},
    {"qk_norm", attends, kAttention},
    {"score", attends, kAttention},
    {"attention_norm", attends, kAttention},
    {"log_n_scale", attends, kAttention},
    {"softcap", attends, kAttention},
    {"sink", attends, kAttention},
    {"t5_buckets", has_t5, kT5},
    {"t5_max_distance", has_t5, kT5},
    {"shaw_clip", has_shaw, "--position shaw and an attention layer in --encoder"},
    {"forget_bias", has_lstm, "a layer lstm or bilstm in --encoder"},
    {"rope_base", has_rotary, "--position rotary and an attention layer in --encoder"},
    {"ff", takes_ff, "a layer ff or transformer in --encoder without ff= of its own"},
    {"activation", takes_activation,
     "a layer ff or transformer in --encoder without activation= of its own"},
    {"norm", has_norm, kNorm},
    {"norm_position", has_norm, kNorm},
    {"ln_variant", has_norm, kNorm},
    {"bias", has_bias, "a layer of attention, ff, residual sums or side by side in --encoder"},
};

bool any_layer(const EncoderConfig& config, const std::vector<SizedStage>& stages,
               bool (*is_on)(const Layer&)) {
  if (stages.empty()) return false;
  const std::vector<EncoderStage> said = parse_encoder(config.encoder);
  for (std::size_t n = 0; n < stages.size(); ++n) {
    const std::vector<SizedLayer>& branches = stages[n].branches;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      if (is_on({said[n][b], branches[b].spec, branches.size() == 1})) return true;
    }
  }
  return false;
}

}  // namespace

std::string_view lacks_for_effect(std::string_view field, const EncoderConfig& config,
                                  const std::vector<SizedStage>& stages) {
  const bool adds_rows = adds_position_rows(config.position);
  if (field == "position") {
    const bool is_on = adds_rows || config.position == PositionKind::kNone ||
                       any_layer(config, stages, takes_position);
    return is_on ? "" : "an attention layer in --encoder without position= of its own";
  }
  if (field == "position_max") return adds_rows ? "" : "--position learned or sinusoidal";
  if (field == "sinusoid") {
    return config.position == PositionKind::kSinusoidal ? "" : "--position sinusoidal";
  }
  const auto* effect = std::find_if(std::begin(kEffects), std::end(kEffects),
                                    [&](const Effect& one) { return one.field == field; });
  if (effect == std::end(kEffects) || any_layer(config, stages, effect->is_on)) return "";
  return effect->needs;
}

}  // namespace fovea
