// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/layer_options.h"

#include "fovea/attention/mask/band.h"
#include "fovea/parts/part_table.h"

namespace fovea {

Biases biases(const EncoderConfig& c) { return c.bias ? Biases::kLearned : Biases::kNone; }

Init matrix_init(const EncoderConfig& c, index in, index out) {
  if (c.init == InitScheme::kSource) return linear_uniform_init(in);
  if (c.init == InitScheme::kKeras) return glorot_uniform_init(in, out);
  return Init::normal(kInitDeviation);
}

BiasStart bias_start(const EncoderConfig& c) {
  return c.init == InitScheme::kSource ? BiasStart::kUniform : BiasStart::kZeros;
}

namespace {

AttentionVariant variant_of(const EncoderConfig& c) {
  const bool rotary = c.position == PositionKind::kRotary;
  return {.score = c.score,
          .log_n_scale = c.log_n_scale ? static_cast<double>(c.block) : 0,
          .softcap = c.softcap,
          .t5_causal = c.sight == Sight::kPast,
          .t5_max_distance = c.t5_max_distance,
          .norm = c.attention_norm,
          .rotary = rotary ? RotaryPairs::kHalves : RotaryPairs::kNone,
          .rotary_base = c.rope_base};
}

// The size of the axis that no other tensor has.
index own_size(const EncoderConfig& c, std::string_view tensor) {
  if (tensor == "t5") return c.t5_buckets;
  return tensor == "shaw_k" || tensor == "shaw_v" ? c.shaw_clip : 1;
}

// At the first revision shaw were the keys alone.
bool learns_position(const EncoderConfig& c, std::string_view tensor) {
  const bool keys_alone = c.revision == Revision::kFirst && tensor == "shaw_v";
  return !tensor.empty() && !keys_alone && learns_tensor(c.position, tensor);
}

std::vector<LayerPart> parts_of(const EncoderConfig& c) {
  using Learning = LayerPart::Learning;
  std::vector<LayerPart> parts;
  for (const AttentionPart& row : attention_parts()) {
    if (learns_position(c, row.tensor) || row.score == c.score ||
        (c.sink && row.tensor == "sink")) {
      const bool published = row.start == PartStart::kSlopes;
      parts.push_back(
          {row.tensor, own_size(c, row.tensor), published ? Learning::kFixed : Learning::kLearned});
    }
  }
  return parts;
}

// How a projection to the model starts that ends in one of `depth` pairs of residual sums.
Init output_init(const EncoderConfig& c, index in, index depth) {
  return c.init == InitScheme::kGpt2 ? residual_init(depth) : matrix_init(c, in, c.width);
}

Init table_init(const EncoderConfig& c) {
  if (c.init == InitScheme::kKeras) return Init::uniform(-0.05, 0.05);
  return Init::normal(c.init == InitScheme::kSource ? 1 : kInitDeviation);
}

}  // namespace

NormOptions norm_options(const EncoderConfig& c, index width) {
  return {.width = width, .kind = c.norm, .variant = c.ln_variant, .bias = biases(c)};
}

ResidualOptions residual_options(const EncoderConfig& c, index width) {
  return {.norm = norm_options(c, width), .position = c.norm_position, .dropout = c.dropout};
}

MultiHeadAttentionOptions attention_options(const EncoderConfig& c, const EncoderLayerSpec& spec,
                                            index depth) {
  MultiHeadAttentionOptions o;
  o.width = c.width;
  o.heads = c.heads;
  o.kv_heads = c.kv_heads;
  o.head_dim = c.head_dim;
  o.bias = biases(c);
  o.output = spec.no_output ? OutputProjection::kNone : OutputProjection::kLearned;
  o.input_init = matrix_init(c, c.width, c.heads * c.head_dim);
  o.output_init = output_init(c, c.heads * c.head_dim, depth);
  o.bias_start = bias_start(c);
  if (c.sight == Sight::kPast) {
    o.mask = mask::Causal();
    o.window = *spec.window;
  } else if (*spec.window > 0) {
    const index reach = *spec.window * spec.dilation;
    o.mask = mask::Window(reach, reach);
  }
  o.dilation = spec.dilation;
  o.strided = spec.strided;
  o.dropout = c.dropout;
  o.qk_norm = c.qk_norm ? QkNorm::kRms : QkNorm::kNone;
  o.variant = variant_of(c);
  o.variant.scale = spec.scale;
  o.parts = parts_of(c);
  return o;
}

FeedForwardOptions feed_forward_options(const EncoderConfig& c, index depth) {
  return {.width = c.width,
          .hidden = c.ff,
          .activation = c.activation,
          .bias = biases(c),
          .input_init = matrix_init(c, c.width, c.ff),
          .output_init = output_init(c, c.ff, depth),
          .bias_start = bias_start(c)};
}

EmbeddingOptions embedding_options(const EncoderConfig& c) {
  return {.vocabulary = c.vocabulary,
          .width = c.width,
          .positions = c.position_max,
          .position = c.position,
          .join = c.position_join,
          .sinusoid = c.sinusoid,
          .scale = c.embedding_scale,
          .init = table_init(c),
          .row_use = c.token_rows,
          .frozen = c.freeze_embeddings};
}

}  // namespace fovea
