// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_effect.h"

#include <algorithm>
#include <iterator>

#include "fovea/base/check.h"
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

// A part of a model, and the layers that have it.
struct Part {
  std::string_view name;
  bool (*is_in)(const Layer&);
  std::string_view needs;  // what has it
  PartOwner owner;
};

constexpr Part kParts[] = {
    {"heads", takes_heads, "an attention layer in --encoder without heads= of its own",
     PartOwner::kAttention},
    {"attention", attends, "an attention layer in --encoder", PartOwner::kAttention},
    {"t5", has_t5, "--position t5 and an attention layer in --encoder", PartOwner::kAttention},
    {"shaw", has_shaw, "--position shaw and an attention layer in --encoder",
     PartOwner::kAttention},
    {"rotary", has_rotary, "--position rotary and an attention layer in --encoder",
     PartOwner::kAttention},
    {"lstm", has_lstm, "a layer lstm or bilstm in --encoder", PartOwner::kLstm},
    {"ff", takes_ff, "a layer ff or transformer in --encoder without ff= of its own",
     PartOwner::kTransformer},
    {"activation", takes_activation,
     "a layer ff or transformer in --encoder without activation= of its own",
     PartOwner::kTransformer},
    {"norm", has_norm, "a layer with a residual sum in --encoder", PartOwner::kTransformer},
    {"bias", has_bias, "a layer of attention, ff, residual sums or side by side in --encoder",
     PartOwner::kAny},
};

const Part* part_called(std::string_view name) {
  const auto* part = std::find_if(std::begin(kParts), std::end(kParts),
                                  [&](const Part& one) { return one.name == name; });
  return part == std::end(kParts) ? nullptr : part;
}

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

PartOwner owner_of_part(std::string_view name) {
  const Part* part = part_called(name);
  return part == nullptr ? PartOwner::kAny : part->owner;
}

std::string_view lacks_for_effect(std::string_view name, const EncoderConfig& config,
                                  const std::vector<SizedStage>& stages) {
  const bool adds_rows = adds_position_rows(config.position);
  if (name == "position") {
    const bool is_on = adds_rows || config.position == PositionKind::kNone ||
                       any_layer(config, stages, takes_position);
    return is_on ? "" : "an attention layer in --encoder without position= of its own";
  }
  if (name == "position rows") return adds_rows ? "" : "--position learned or sinusoidal";
  if (name == "sinusoid") {
    return config.position == PositionKind::kSinusoidal ? "" : "--position sinusoidal";
  }
  if (name.empty()) return "";
  const Part* part = part_called(name);
  if (part == nullptr) fail(ErrorCode::kInternal, "a field is of the part {}, which is none", name);
  return any_layer(config, stages, part->is_in) ? "" : part->needs;
}

}  // namespace fovea
