// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_sizes.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "fovea/base/option.h"
#include "fovea/kernel/sru.h"

namespace fovea {

namespace {

using Kind = EncoderLayerKind;

bool is_attending(Kind kind) { return kind == Kind::kAttention || kind == Kind::kTransformer; }

void check_steps(const EncoderLayerSpec& spec, const EncoderConfig& c) {
  if (spec.dilation > 1 && spec.strided > 0) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder: {}: dilation= and strided= exclude each other", layer_name(spec)),
        "choose one: strided= sees the near keys, too");
  }
  if (spec.dilation > 1 && spec.dilation >= c.block) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {}:dilation={}: within --block ({}) a token sees itself "
                            "alone",
                            layer_name(spec), spec.dilation, c.block),
                "choose a smaller dilation, or a larger --block");
  }
}

void fill_attention(EncoderLayerSpec& spec, const EncoderConfig& c, index width) {
  const bool own_heads = spec.heads > 0;
  if (!own_heads) spec.heads = c.heads;
  if (spec.kv_heads == 0) spec.kv_heads = own_heads ? spec.heads : c.kv_heads;
  if (spec.heads % spec.kv_heads != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--encoder: {}: {} heads are no multiple of {} kv-heads",
                            layer_name(spec), spec.heads, spec.kv_heads),
                "each head of keys and values serves a group of heads");
  }
  if (spec.head_dim == 0 && !own_heads && width == c.width) spec.head_dim = c.head_dim;
  if (spec.head_dim == 0) {
    if (width % spec.heads != 0) {
      throw Error(ErrorCode::kShape,
                  fmt::format("--encoder: {}: its {} columns are not divisible by {} heads",
                              layer_name(spec), width, spec.heads),
                  "choose heads= or head-dim= yourself");
    }
    spec.head_dim = width / spec.heads;
  }
  if (!spec.position) {
    spec.position = adds_position_rows(c.position) ? PositionKind::kNone : c.position;
  }
  if (adds_position_rows(*spec.position)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: position={} belongs to the embeddings, not to a layer",
                            to_string(*spec.position)),
                "give it as --position");
  }
  if (!spec.window) spec.window = 0;
  check_steps(spec, c);
}

void fill_attention_rnn(EncoderLayerSpec& spec) {
  if (spec.heads == 0) spec.heads = 1;
  if (!spec.window) spec.window = 0;
  if (spec.width % spec.heads != 0) {
    throw Error(
        ErrorCode::kShape,
        fmt::format("attention-rnn: width {} is not divisible by {} heads", spec.width, spec.heads),
        "make the width a multiple of the heads");
  }
}

// The columns of the result of one layer.
index width_after(const EncoderLayerSpec& spec, index in) {
  if (spec.no_output) return spec.heads * spec.head_dim;
  if (is_attending(spec.kind) || spec.kind == Kind::kFeedForward) return in;
  if (spec.kind == Kind::kTextCnn) {
    return checked_product(static_cast<index>(spec.widths.size()), spec.width,
                           "--encoder: columns of textcnn");
  }
  return spec.kind == Kind::kRecurrent && spec.bidirectional ? 2 * spec.width : spec.width;
}

void fill_residual(EncoderLayerSpec& spec, index in, index out) {
  const bool usual = in == out && (is_attending(spec.kind) || spec.kind == Kind::kFeedForward ||
                                   spec.kind == Kind::kConvolution);
  if (!spec.residual) spec.residual = usual;
  if (!*spec.residual || in == out) return;
  throw Error(ErrorCode::kShape,
              fmt::format("--encoder: {}:residual: a sum needs equal widths; {} columns become {}",
                          layer_name(spec), in, out),
              "leave out residual, or choose an equal width");
}

void check_convolution(const EncoderLayerSpec& spec, const EncoderConfig& c) {
  if (spec.kernel > 1 && spec.dilation > (c.block - 1) / (spec.kernel - 1)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {}:dilation={}: it sees further back than --block ({})",
                            layer_name(spec), spec.dilation, c.block),
                "choose a smaller width or dilation, or a larger --block");
  }
  if (spec.gated && spec.activation) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder: {}: gated and activation= exclude each other", layer_name(spec)),
        "a gated linear unit has no other activation");
  }
}

void check_text_cnn(const EncoderLayerSpec& spec, const EncoderConfig& c) {
  if (!c.pools) {
    throw Error(ErrorCode::kOptionValue,
                "--encoder: textcnn describes a whole text, so it belongs to train classify",
                "take convolutions such as conv3,conv3");
  }
  for (const index width : spec.widths) {
    if (width <= c.block) continue;
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: textcnn: a window of {} is longer than --block ({})", width,
                            c.block),
                "choose smaller windows, or a larger --block");
  }
}

// Joints have no order that a position could tell: their embeddings do.
void check_joints(EncoderLayerSpec& spec, const EncoderConfig& c) {
  if (!spec.joints) return;
  if (c.joints == 0) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {}:joints: the input has no joints", layer_name(spec)),
                "with --input npz, x [sample, time, joints, features] has them");
  }
  if (!spec.position && is_attending(spec.kind)) spec.position = PositionKind::kNone;
}

SizedLayer sized(EncoderLayerSpec spec, const EncoderConfig& c, index in) {
  check_joints(spec, c);
  if (spec.bidirectional && c.sight == Sight::kPast) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {} reads backwards, too: a language model must not see the "
                            "tokens that it predicts",
                            layer_name(spec)),
                fmt::format("take {}", layer_name(spec).substr(2)));
  }
  if (spec.kind == Kind::kConvolution) check_convolution(spec, c);
  if (spec.kind == Kind::kTextCnn) check_text_cnn(spec, c);
  if (spec.width == 0) spec.width = c.width;
  if (is_attending(spec.kind)) fill_attention(spec, c, in);
  if (spec.kind == Kind::kAttentionRnn) fill_attention_rnn(spec);
  if (spec.ff == 0) {
    spec.ff = in == c.width ? c.ff : checked_product(4, in, "--encoder: ff: 4 x its width");
  }
  if (!spec.activation) {
    spec.activation = spec.kind == Kind::kConvolution ? Activation::kRelu : c.activation;
  }
  const index out = width_after(spec, in);
  fill_residual(spec, in, out);
  return {spec, in, out};
}

SizedStage sized(const EncoderStage& stage, const EncoderConfig& c, index in) {
  SizedStage result{.branches = {}, .in = in};
  for (const EncoderLayerSpec& spec : stage) result.branches.push_back(sized(spec, c, in));
  result.out = stage.size() == 1 ? result.branches[0].out : c.width;
  return result;
}

// The values in the matrices of a layer's products, all its `layers` together: as many
// multiply-adds for one token.
double matrix_values(const SizedLayer& layer) {
  const EncoderLayerSpec& s = layer.spec;
  const auto in = static_cast<double>(layer.in), out = static_cast<double>(layer.out),
             width = static_cast<double>(s.width), layers = static_cast<double>(s.layers);
  const double head_columns = static_cast<double>((s.heads + s.kv_heads) * s.head_dim);
  const double output = s.no_output ? static_cast<double>(s.heads * s.head_dim) : 0;
  const double attention = in * (2 * head_columns - output);
  const double feed_forward = 2 * in * static_cast<double>(s.ff);
  switch (s.kind) {
    case Kind::kTransformer:
      return layers * (attention + feed_forward);
    case Kind::kAttention:
      return attention / in * (in + (layers - 1) * out);
    case Kind::kFeedForward:
      return layers * feed_forward;
    case Kind::kConvolution: {
      const double tap = (s.gated ? 2 : 1) * width * static_cast<double>(s.kernel);
      return tap * (in + (layers - 1) * out);
    }
    case Kind::kTextCnn:
      return in * width *
             static_cast<double>(std::accumulate(s.widths.begin(), s.widths.end(), index{0}));
    case Kind::kAttentionRnn:
      return width * (in + (layers - 1) * out) + layers * width * width * (s.heads > 1 ? 5 : 1);
    case Kind::kRecurrent:
      break;
  }
  double columns = 0;  // of the products with the inputs and with the states, times their rows
  for (index n = 0; n < s.layers; ++n) {
    const index from = n == 0 ? layer.in : layer.out;
    columns += static_cast<double>(input_blocks(s.cell, from, s.width)) * static_cast<double>(from);
    if (s.cell != RecurrentKind::kSru) columns += recurrent_gates(s.cell) * width;
  }
  return (s.bidirectional ? 2 : 1) * width * columns;
}

// Keys that a query sees in the mean, times the columns of its heads; 0 without attention.
double score_columns(const EncoderConfig& c, const SizedLayer& layer) {
  const EncoderLayerSpec& s = layer.spec;
  const auto block = static_cast<double>(c.block), layers = static_cast<double>(s.layers);
  if (s.kind == Kind::kAttentionRnn) return layers * (block + 1) / 2 * static_cast<double>(s.width);
  if (!is_attending(s.kind)) return 0;
  const double keys = c.sight == Sight::kPast ? (block + 1) / 2 : block;
  return layers * keys * static_cast<double>(s.heads * s.head_dim);
}

}  // namespace

bool ends_with_text_cnn(const std::vector<SizedStage>& stages) {
  return !stages.empty() && stages.back().branches[0].spec.kind == Kind::kTextCnn;
}

index reverse_columns(const std::vector<SizedStage>& stages) {
  if (stages.empty() || stages.back().branches.size() > 1) return 0;
  const EncoderLayerSpec& last = stages.back().branches[0].spec;
  return last.bidirectional && !last.joints ? last.width : 0;
}

std::vector<SizedStage> size_stages(const EncoderConfig& c, std::span<const EncoderStage> stages) {
  std::vector<SizedStage> result;
  index in = c.width;
  for (const EncoderStage& stage : stages) {
    result.push_back(sized(stage, c, in));
    for (const EncoderLayerSpec& spec : stage) {
      if (spec.kind != Kind::kTextCnn || (stage.size() == 1 && &stage == &stages.back())) continue;
      throw Error(ErrorCode::kOptionValue, "--encoder: textcnn must be the last layer, and alone",
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
      if (layer.spec.head_dim > 0) check_attention(config_of_layer(c, layer));
    }
  }
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
  if (!alone || first.kind != Kind::kAttention) return 0;
  return (first.heads + 2 * first.kv_heads) * first.head_dim;
}

double encoder_flops_per_token(const EncoderConfig& c, const std::vector<SizedStage>& stages) {
  double matrices = 0, scores = 0;
  for (const SizedStage& stage : stages) {
    double joined = 0;
    for (const SizedLayer& layer : stage.branches) {
      matrices += matrix_values(layer);
      scores += score_columns(c, layer);
      joined += static_cast<double>(layer.out);
    }
    if (stage.branches.size() > 1) matrices += joined * static_cast<double>(stage.out);
  }
  const auto C = static_cast<double>(c.width);
  const double join = c.position_join == PositionJoin::kConcatenate ? 2 * C * C : 0;
  return 6 * (matrices + join) + 14 * scores;
}

EncoderConfig config_of_layer(const EncoderConfig& config, const SizedLayer& layer) {
  EncoderConfig c = config;
  const EncoderLayerSpec& spec = layer.spec;
  c.width = layer.in;
  c.ff = spec.ff;
  c.activation = *spec.activation;
  if (spec.kind == Kind::kAttentionRnn) {
    c.heads = c.kv_heads = spec.heads;
    c.head_dim = spec.width / spec.heads;
    c.position = PositionKind::kNone;
    c.score = AttentionScoreKind::kDot;
    c.attention_norm = c.attention_rnn_defects.sum_weights ? AttentionNormKind::kNone
                                                           : AttentionNormKind::kSoftmax;
  }
  if (!is_attending(spec.kind)) return c;
  c.heads = spec.heads;
  c.kv_heads = spec.kv_heads;
  c.head_dim = spec.head_dim;
  c.position = *spec.position;
  return c;
}

}  // namespace fovea
