// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_layers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "fovea/attention/mask/band.h"
#include "fovea/nn/encoder_layers.h"
#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

Biases biases(const LanguageModelConfig& c) { return c.bias ? Biases::kLearned : Biases::kNone; }

NormOptions norm_options(const LanguageModelConfig& c, index width) {
  const bool unbiased = compat_of(c).ln_unbiased;
  return {.width = width,
          .kind = c.norm,
          .variant = unbiased ? LayerNormVariant::kUnbiased : c.ln_variant,
          .bias = biases(c)};
}

// Of a matrix that reads `in` columns; `gpt2` is what GPT-2 takes.
Init matrix_init(const LanguageModelConfig& c, index in, Init gpt2) {
  return c.init == InitScheme::kSource ? linear_uniform_init(in) : gpt2;
}

Init matrix_init(const LanguageModelConfig& c, index in) {
  return matrix_init(c, in, Init::normal(kInitDeviation));
}

BiasStart bias_start(const LanguageModelConfig& c) {
  return c.init == InitScheme::kSource ? BiasStart::kUniform : BiasStart::kZeros;
}

// The book's RNN, and the projections of its attention.
constexpr double kSourceRnnDeviation = 0.01;

// Of recurrent layers; none: PyTorch's.
std::optional<Init> recurrent_init(const LanguageModelConfig& c, const EncoderLayerSpec& spec) {
  const bool is_rnn =
      spec.kind == EncoderLayerKind::kAttentionRnn || spec.cell == RecurrentKind::kRnn;
  if (c.init == InitScheme::kSource && is_rnn) return Init::normal(kSourceRnnDeviation);
  return std::nullopt;
}

AttentionVariant variant_of(const LanguageModelConfig& c) {
  const bool rotary = c.position == PositionKind::kRotary;
  return {.score = c.score,
          .log_n_scale = c.log_n_scale ? static_cast<double>(c.block) : 0,
          .softcap = c.softcap,
          .t5_causal = true,
          .t5_max_distance = c.t5_max_distance,
          .norm = c.attention_norm,
          .rotary = rotary ? RotaryPairs::kHalves : RotaryPairs::kNone,
          .rotary_base = c.rope_base};
}

// Of the axis that the tensor alone has.
index own_size(const LanguageModelConfig& c, std::string_view tensor) {
  if (tensor == "t5") return c.t5_buckets;
  return tensor == "shaw_k" ? c.shaw_clip : 1;
}

std::vector<LayerPart> parts_of(const LanguageModelConfig& c) {
  using Learning = LayerPart::Learning;
  std::vector<LayerPart> parts;
  for (const AttentionPart& row : attention_parts()) {
    const bool is_position = &row == part_of(c.position);
    if (is_position || row.score == c.score || (c.sink && row.tensor == "sink")) {
      const bool published = row.start == PartStart::kSlopes;
      parts.push_back(
          {row.tensor, own_size(c, row.tensor), published ? Learning::kFixed : Learning::kLearned});
    }
  }
  return parts;
}

ResidualOptions residual_options(const LanguageModelConfig& c, index width) {
  return {.norm = norm_options(c, width), .position = c.norm_position, .dropout = c.dropout};
}

// Residual sums of a model: two of a Transformer's layer.
Init output_init(const LanguageModelConfig& c, index in) {
  return matrix_init(c, in, residual_init(c.layers));
}

MultiHeadAttentionOptions attention_options(const LanguageModelConfig& c, index window) {
  MultiHeadAttentionOptions o;
  o.width = c.width;
  o.heads = c.heads;
  o.kv_heads = c.kv_heads;
  o.head_dim = c.head_dim;
  o.bias = biases(c);
  o.input_init = matrix_init(c, c.width);
  o.output_init = output_init(c, c.heads * c.head_dim);
  o.bias_start = bias_start(c);
  o.mask = mask::Causal();
  o.window = window;
  o.dropout = c.dropout;
  o.qk_norm = c.qk_norm ? QkNorm::kRms : QkNorm::kNone;
  o.variant = variant_of(c);
  o.parts = parts_of(c);
  return o;
}

FeedForwardOptions feed_forward_options(const LanguageModelConfig& c) {
  return {.width = c.width,
          .hidden = c.ff,
          .activation = c.activation,
          .bias = biases(c),
          .input_init = matrix_init(c, c.width),
          .output_init = output_init(c, c.ff),
          .bias_start = bias_start(c)};
}

RecurrentLayersOptions recurrent_options(const LanguageModelConfig& c, const SizedLayer& layer) {
  const EncoderLayerSpec& spec = layer.spec;
  return {.kind = spec.cell,
          .in = layer.in,
          .hidden = spec.width,
          .layers = spec.layers,
          .bidirectional = spec.bidirectional,
          .dropout = c.dropout,
          .weight = recurrent_init(c, spec)};
}

ConvolutionLayerOptions convolution_options(const SizedLayer& layer) {
  const EncoderLayerSpec& spec = layer.spec;
  return {.in = layer.in,
          .out = spec.width,
          .width = spec.kernel,
          .padding = Padding::kCausal,
          .dilation = spec.dilation,
          .activation = spec.gated ? Activation::kNone : *spec.activation,
          .gated = spec.gated};
}

AttentionRnnOptions attention_rnn_options(const LanguageModelConfig& c, const SizedLayer& layer) {
  const EncoderLayerSpec& spec = layer.spec;
  const bool from_source = c.init == InitScheme::kSource;
  return {.in = layer.in,
          .hidden = spec.width,
          .heads = spec.heads,
          .window = *spec.window,
          .defects = compat_of(c).attention_rnn,
          .recurrent = recurrent_init(c, spec),
          .linear = Init::normal(from_source ? kSourceRnnDeviation : kInitDeviation)};
}

std::unique_ptr<EncoderLayer> make_layer(const LanguageModelConfig& config, const SizedLayer& layer,
                                         const ParameterScope& scope) {
  using enum EncoderLayerKind;
  const LanguageModelConfig c = config_of_layer(config, layer);
  const EncoderLayerSpec& spec = layer.spec;
  ResidualIf residual;
  if (*spec.residual) residual = residual_options(config, layer.in);
  switch (spec.kind) {
    case kTransformer:
      return block_layer({attention_options(c, *spec.window), feed_forward_options(c),
                          residual_options(config, layer.in)},
                         scope);
    case kAttention:
      return attention_layer(attention_options(c, *spec.window), residual, scope);
    case kFeedForward:
      return feed_forward_layer(feed_forward_options(c), residual, scope);
    case kConvolution:
      return convolution_layer(convolution_options(layer), residual, scope);
    case kAttentionRnn:
      return attention_rnn_layer(attention_rnn_options(c, layer), scope);
    case kRecurrent:
      break;
  }
  return recurrent_layer(recurrent_options(c, layer), residual, scope);
}

// The layers of a branch, one after another; the cells of recurrent layers are one layer.
EncoderBranch make_branch(const LanguageModelConfig& c, SizedLayer layer,
                          const std::function<ParameterScope()>& next_scope) {
  EncoderBranch branch;
  const bool is_one = layer.spec.kind == EncoderLayerKind::kRecurrent;
  const index count = is_one ? 1 : layer.spec.layers;
  for (index n = 0; n < count; ++n) {
    branch.push_back(make_layer(c, layer, next_scope()));
    layer.in = layer.out;
  }
  return branch;
}

EncoderStageLayers make_stage(const LanguageModelConfig& c, const SizedStage& stage,
                              const std::function<ParameterScope()>& next_scope) {
  EncoderStageLayers layers;
  if (stage.branches.size() == 1) {
    layers.branches.push_back(make_branch(c, stage.branches[0], next_scope));
    return layers;
  }
  const ParameterScope scope = next_scope();
  index number = 0, columns = 0;
  for (const SizedLayer& branch : stage.branches) {
    layers.branches.push_back(make_branch(c, branch, [&] { return scope[number++]; }));
    columns += branch.out;
  }
  layers.join.emplace(LinearOptions{.in = columns,
                                    .out = stage.out,
                                    .bias = biases(c),
                                    .weight = matrix_init(c, columns),
                                    .bias_start = bias_start(c)},
                      scope["join"]);
  return layers;
}

// As many layers of a Transformer as have the model's residual sums: two each.
index depth_of(const std::vector<SizedStage>& stages) {
  index sums = 0;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      const bool two = layer.spec.kind == EncoderLayerKind::kTransformer;
      sums += layer.spec.layers * (two ? 2 : *layer.spec.residual ? 1 : 0);
    }
  }
  return std::max<index>(1, (sums + 1) / 2);
}

Encoder make_encoder(LanguageModelConfig c, const std::vector<SizedStage>& stages,
                     const ParameterScope& scope) {
  c.layers = depth_of(stages);
  Encoder encoder;
  index number = 0;
  for (const SizedStage& stage : stages) {
    encoder.add(make_stage(c, stage, [&] { return scope[number++]; }));
  }
  return encoder;
}

EmbeddingOptions embedding_options(const LanguageModelConfig& c) {
  const bool from_source = c.init == InitScheme::kSource;
  return {.vocabulary = c.vocabulary,
          .width = c.width,
          .positions = c.position_max,
          .position = c.position,
          .join = c.position_join,
          .sinusoid = c.sinusoid,
          .scale = c.embedding_scale,
          .init = Init::normal(from_source ? 1 : kInitDeviation),
          .row_use = c.tie ? RowUse::kDense : RowUse::kSparse};
}

std::string_view scope_name(const LanguageModelConfig& c) {
  return c.kind == LanguageModelKind::kTransformer ? "blocks" : "encoder";
}

}  // namespace

LanguageModelLayers::LanguageModelLayers(const LanguageModelConfig& c, const ParameterScope& scope)
    : dropout_(c.dropout), embedding_(embedding_options(c), scope["embedding"]) {
  const std::vector<SizedStage> stages = sized_stages(c);
  encoder_ = make_encoder(c, stages, scope[scope_name(c)]);
  const index width = stages.back().out;
  if (ends_with_norm(c, stages)) norm_.emplace(norm_options(c, width), scope["norm"]);
  if (!c.tie) {
    output_.emplace(LinearOptions{.in = width,
                                  .out = c.vocabulary,
                                  .bias = biases(c),
                                  .weight = matrix_init(c, width),
                                  .bias_start = bias_start(c)},
                    scope["output"]);
  }
}

Variable LanguageModelLayers::hidden(Tape& tape, Vec<const std::int32_t> ids,
                                     const PackedRows& rows, const DropoutKey& key,
                                     std::span<HeadStatistics> seen) const {
  Variable x = embedding_.forward(tape, ids, rows);
  x = dropout(tape, x, {dropout_, {key.seed, key.step, 0}}, rows);
  return finish(tape, encoder_.forward(tape, x, rows, key, seen));
}

Variable LanguageModelLayers::hidden(Tape& tape, Vec<const std::int32_t> ids,
                                     const PackedRows& rows, EncoderSession& session) const {
  return finish(tape, session.forward(tape, embedding_.forward(tape, ids, rows)));
}

}  // namespace fovea
