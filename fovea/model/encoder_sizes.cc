// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_sizes.h"

#include <algorithm>

#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

void fill_residual(EncoderLayerSpec& spec, index in, index out) {
  const LayerSum sum = spec.kind->sum;
  const bool usual = in == out && (sum == LayerSum::kUsual || sum == LayerSum::kInside);
  if (!spec.residual) spec.residual = usual;
  if (!*spec.residual || in == out) return;
  throw Error(ErrorCode::kShape,
              fmt::format("--encoder: {}:residual: a sum needs equal widths; {} columns become {}",
                          layer_name(spec), in, out),
              "leave out residual, or choose an equal width");
}

void check_sight(const EncoderLayerSpec& spec, const EncoderConfig& c) {
  if (spec.joints && c.joints == 0) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {}:joints: the input has no joints", layer_name(spec)),
                "with --input npz, x [sample, time, joints, features] has them");
  }
  if (spec.kind->reads_back && c.sight == Sight::kPast) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {} reads backwards, too: a language model must not see the "
                            "tokens that it predicts",
                            layer_name(spec)),
                fmt::format("take {}", layer_name(spec).substr(2)));
  }
}

SizedLayer sized(EncoderLayerSpec spec, const EncoderConfig& c, index in) {
  check_sight(spec, c);
  spec.kind->fill(spec, c, in);
  const index out = spec.kind->out(spec, in);
  fill_residual(spec, in, out);
  return {spec, in, out};
}

SizedStage sized(const EncoderStage& stage, const EncoderConfig& c, index in) {
  SizedStage result{.branches = {}, .in = in};
  for (const EncoderLayerSpec& spec : stage) result.branches.push_back(sized(spec, c, in));
  result.out = stage.size() == 1 ? result.branches[0].out : c.width;
  return result;
}

}  // namespace

bool ends_with_text_cnn(const std::vector<SizedStage>& stages) {
  return !stages.empty() && stages.back().branches[0].spec.kind->is_last;
}

index reverse_columns(const std::vector<SizedStage>& stages) {
  if (stages.empty() || stages.back().branches.size() > 1) return 0;
  const EncoderLayerSpec& last = stages.back().branches[0].spec;
  return last.kind->reads_back && !last.joints ? last.width : 0;
}

std::vector<SizedStage> size_stages(const EncoderConfig& c, std::span<const EncoderStage> stages) {
  std::vector<SizedStage> result;
  index in = c.width;
  for (const EncoderStage& stage : stages) {
    result.push_back(sized(stage, c, in));
    for (const EncoderLayerSpec& spec : stage) {
      if (!spec.kind->is_last || (stage.size() == 1 && &stage == &stages.back())) continue;
      throw Error(ErrorCode::kOptionValue,
                  fmt::format("--encoder: {} must be the last layer, and alone", layer_name(spec)),
                  "what it makes of a text is the maximum over time, which no layer can read");
    }
    in = result.back().out;
  }
  if (projected_once_columns(c, result) > 0) result[0].branches[0].projected_once = true;
  return result;
}

index layer_count(const std::vector<SizedStage>& stages) {
  index count = 0;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      count += std::min(layer.spec.layers, kMostLayers + 1);
    }
  }
  return count;
}

void check_stages(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  if (layer_count(stages) > kMostLayers) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: it has more than {} layers", kMostLayers),
                "choose a smaller layers=");
  }
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (layer.spec.kind->attends) check_attention(config_of_layer(c, layer));
    }
  }
}

index reach_of(std::string_view encoder) {
  if (encoder.empty()) return 1;
  index reach = 1;
  for (const EncoderStage& stage : parse_encoder(encoder)) {
    for (const EncoderLayerSpec& layer : stage) {
      for (const index width : layer.widths) reach = std::max(reach, width);
      if (layer.kernel > 0) reach = std::max(reach, (layer.kernel - 1) * layer.dilation + 1);
    }
  }
  return reach;
}

index last_width(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  return stages.empty() ? c.width : stages.back().out;
}

bool ends_with_norm(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  if (c.norm_position != NormPosition::kPre) return false;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (*layer.spec.residual) return true;
    }
  }
  return false;
}

index projected_once_columns(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  const bool joins = c.position_join == PositionJoin::kConcatenate;
  if (c.features > 0 || c.dropout > 0 || joins || stages.empty()) return 0;
  const EncoderLayerSpec& first = stages[0].branches[0].spec;
  const bool alone = stages[0].branches.size() == 1 && !*first.residual && !first.joints;
  if (!alone || !first.kind->has_first_step) return 0;
  return (first.heads + 2 * first.kv_heads) * first.head_dim;
}

EncoderConfig config_of_layer(const EncoderConfig& config, const SizedLayer& layer) {
  EncoderConfig c = config;
  const EncoderLayerSpec& spec = layer.spec;
  c.width = layer.in;
  if (spec.kind->feeds_forward) {
    c.ff = spec.ff;
    c.activation = *spec.activation;
  }
  if (!spec.kind->attends) return c;
  c.heads = spec.heads;
  c.kv_heads = spec.kv_heads;
  c.head_dim = spec.head_dim;
  c.position = *spec.position;
  return c;
}

}  // namespace fovea
