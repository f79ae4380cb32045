// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/layer_table.h"

#include <algorithm>

#include "fovea/attention/mask/band.h"
#include "fovea/base/option.h"
#include "fovea/kernel/sru.h"
#include "fovea/nn/attention_rnn.h"
#include "fovea/nn/depthwise.h"
#include "fovea/nn/kv_cache.h"
#include "fovea/parts/axes.h"
#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

using Spec = EncoderLayerSpec;

double real(index size) { return static_cast<double>(size); }

// ------------------------------------------------------------------------ what layers share

index same_width(const Spec&, index in) { return in; }
index own_width(const Spec& spec, index) { return spec.width; }

void fill_width(Spec& spec, const EncoderConfig& c, index) {
  if (spec.width == 0) spec.width = c.width;
}

// The start of recurrent weights; none: PyTorch's. The book has no SRU.
std::optional<Init> recurrent_init(const EncoderConfig& c, RecurrentKind cell) {
  if (c.init == InitScheme::kSource && cell != RecurrentKind::kSru) {
    return Init::normal(kSourceRnnDeviation);
  }
  return std::nullopt;
}

// ---------------------------------------------------------------------------- recurrent layers

std::unique_ptr<EncoderLayer> make_recurrent(const LayerParts& p, const ParameterScope& scope) {
  const RecurrentKind cell = p.spec.kind->cell;
  const RecurrentLayersOptions options{
      .kind = cell,
      .in = p.config.width,
      .hidden = p.spec.width,
      .layers = p.spec.layers,
      .bidirectional = p.spec.kind->reads_back,
      .dropout = p.config.dropout,
      .weight = recurrent_init(p.config, cell),
      .forget_bias = p.config.init == InitScheme::kSource ? 0 : p.config.forget_bias};
  return recurrent_layer(options, p.residual, scope);
}

enum class Reads { kForward, kBothWays };

constexpr LayerKind recurrent(std::string_view name, RecurrentKind cell, Reads reads) {
  const bool both = reads == Reads::kBothWays;
  return {.name = name,
          .settings = "width layers joints residual plain",
          .cell = cell,
          .is_recurrent = true,
          .reads_back = both,
          .in_one = true,
          .mixes = true,
          .sum = LayerSum::kIfSaid,
          .fill = fill_width,
          .out = both ? [](const Spec& spec, index) { return 2 * spec.width; } : own_width,
          .make = make_recurrent};
}

// ---------------------------------------------------------------------------- attention RNN

void fill_attention_rnn(Spec& spec, const EncoderConfig& c, index in) {
  fill_width(spec, c, in);
  if (spec.heads == 0) spec.heads = 1;
  if (!spec.window) spec.window = 0;
  if (spec.width % spec.heads != 0) {
    throw Error(
        ErrorCode::kShape,
        fmt::format("attention-rnn: width {} is not divisible by {} heads", spec.width, spec.heads),
        "make the width a multiple of the heads");
  }
}

std::unique_ptr<EncoderLayer> make_attention_rnn(const LayerParts& p, const ParameterScope& scope) {
  const bool from_source = p.config.init == InitScheme::kSource;
  const AttentionRnnOptions options{
      .in = p.config.width,
      .hidden = p.spec.width,
      .heads = p.spec.heads,
      .window = *p.spec.window,
      .defects = p.config.attention_rnn_defects,
      .recurrent = recurrent_init(p.config, RecurrentKind::kRnn),
      .linear = Init::normal(from_source ? kSourceRnnDeviation : kInitDeviation)};
  return std::make_unique<AttentionRnn>(options, scope["attention_rnn"]);
}

// ------------------------------------------------------------------------------ convolutions

void check_reach(const Spec& spec, const EncoderConfig& c) {
  if (spec.kernel == 1 || spec.dilation <= (c.block - 1) / (spec.kernel - 1)) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--encoder: {}:dilation={}: it sees further back than --block ({})",
                          layer_name(spec), spec.dilation, c.block),
              "choose a smaller width or dilation, or a larger --block");
}

void fill_convolution(Spec& spec, const EncoderConfig& c, index in) {
  fill_width(spec, c, in);
  check_reach(spec, c);
  if (spec.gated && spec.activation) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder: {}: gated and activation= exclude each other", layer_name(spec)),
        "a gated linear unit has no other activation");
  }
  if (!spec.activation) spec.activation = LayerActivation::kRelu;
  if (is_gated(*spec.activation)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {}:activation={} is of feed-forward networks",
                            layer_name(spec), to_string(*spec.activation)),
                "a convolution has gates with `gated`");
  }
}

std::unique_ptr<EncoderLayer> make_convolution(const LayerParts& p, const ParameterScope& scope) {
  const Spec& spec = p.spec;
  const bool causal = p.config.sight == Sight::kPast;
  const ConvolutionLayerOptions options{
      .in = p.config.width,
      .out = spec.width,
      .width = spec.kernel,
      .padding = causal ? Padding::kCausal : Padding::kSame,
      .dilation = spec.dilation,
      .activation = spec.gated ? Activation::kNone : function_of(*spec.activation),
      .gated = spec.gated};
  return convolution_layer(options, p.residual, scope);
}

// A convolution keeps the last rows that it sees.
double kept_by_convolution(const Spec& spec, index in, index, index) {
  return real(spec.kernel - 1) * real(spec.dilation) * real(in);
}

void fill_depthwise(Spec& spec, const EncoderConfig& c, index) {
  constexpr index kLeast = 2, kMost = 7;
  if (spec.kernel < kLeast || spec.kernel > kMost) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: {}: its width must be {} to {} tokens", layer_name(spec),
                            kLeast, kMost),
                "write dwconv4, for example");
  }
  check_reach(spec, c);
}

std::unique_ptr<EncoderLayer> make_depthwise(const LayerParts& p, const ParameterScope& scope) {
  const DepthwiseConvolutionOptions options{.columns = p.config.width, .width = p.spec.kernel};
  return in_residual(std::make_unique<DepthwiseConvolution>(options, scope["depthwise"]),
                     p.residual, scope);
}

void fill_text_cnn(Spec& spec, const EncoderConfig& c, index in) {
  fill_width(spec, c, in);
  if (!c.pools) {
    throw Error(ErrorCode::kOptionValue,
                "--encoder: textcnn describes a whole text, so it belongs to train classify",
                "take convolutions such as conv3,conv3");
  }
  for (const index width : spec.widths) {
    if (width <= c.block) continue;
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: textcnn: a window of {} is longer than --max-length ({})",
                            width, c.block),
                "choose smaller windows, or a larger --max-length");
  }
}

index text_cnn_width(const Spec& spec, index) {
  return checked_product(static_cast<index>(spec.widths.size()), spec.width,
                         "--encoder: columns of textcnn");
}

std::unique_ptr<EncoderLayer> make_text_cnn(const LayerParts& p, const ParameterScope& scope) {
  return text_cnn_layer({.in = p.config.width,
                         .out = p.spec.width,
                         .widths = p.spec.widths,
                         .whole = p.config.revision >= Revision::kThird},
                        scope);
}

// ---------------------------------------------------------- attention and feed-forward networks

void check_steps(const Spec& spec, const EncoderConfig& c) {
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

void fill_heads(Spec& spec, const EncoderConfig& c, index in) {
  const bool own_heads = spec.heads > 0;
  if (!own_heads) spec.heads = c.heads;
  if (spec.kv_heads == 0) spec.kv_heads = own_heads ? spec.heads : c.kv_heads;
  if (spec.heads % spec.kv_heads != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--encoder: {}: {} heads are no multiple of {} kv-heads",
                            layer_name(spec), spec.heads, spec.kv_heads),
                "each head of keys and values serves a group of heads");
  }
  if (spec.head_dim == 0 && !own_heads && in == c.width) spec.head_dim = c.head_dim;
  if (spec.head_dim > 0) return;
  if (in % spec.heads != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--encoder: {}: its {} columns are not divisible by {} heads",
                            layer_name(spec), in, spec.heads),
                "choose heads= or head-dim= yourself");
  }
  spec.head_dim = in / spec.heads;
}

void fill_attention(Spec& spec, const EncoderConfig& c, index in) {
  fill_heads(spec, c, in);
  // Joints have no order that a position could tell: their embeddings do.
  const bool without = spec.joints || adds_position_rows(c.position);
  if (!spec.position) spec.position = without ? PositionKind::kNone : c.position;
  if (adds_position_rows(*spec.position)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: position={} belongs to the embeddings, not to a layer",
                            to_string(*spec.position)),
                "give it as --position");
  }
  if (!spec.window) spec.window = 0;
  check_steps(spec, c);
}

index attention_width(const Spec& spec, index in) {
  return spec.no_output ? spec.heads * spec.head_dim : in;
}

MultiHeadAttentionOptions attention_of(const LayerParts& p) {
  MultiHeadAttentionOptions options = attention_options(p.config, p.spec, p.depth);
  share_distances(options, p.distances);
  return options;
}

std::unique_ptr<EncoderLayer> make_attention(const LayerParts& p, const ParameterScope& scope) {
  return attention_layer(attention_of(p), p.residual, scope);
}

double kept_by_attention(const Spec& spec, index, index block, index tokens) {
  const index held = std::min(tokens, KvCache::room_needed(block, *spec.window * spec.dilation));
  return 2 * real(held) * real(spec.kv_heads * spec.head_dim);
}

void fill_feed_forward(Spec& spec, const EncoderConfig& c, index in) {
  if (spec.ff == 0) {
    spec.ff = in == c.width ? c.ff : checked_product(4, in, "--encoder: ff: 4 x its width");
  }
  if (!spec.activation) spec.activation = c.activation;
}

std::unique_ptr<EncoderLayer> make_transformer(const LayerParts& p, const ParameterScope& scope) {
  return std::make_unique<Block>(
      BlockOptions{.attention = attention_of(p),
                   .feed_forward = feed_forward_options(p.config, p.depth),
                   .residual = p.residual.value(),
                   .experts = experts_options(p.config, p.depth)},
      scope);
}

// -------------------------------------------------------------------------------- the table

// A session goes on without an end, so it is its window, or a block, that says what it keeps.
double kept_by_attention_rnn(const Spec& spec, index, index block, index) {
  constexpr index kWithoutEnd = index{1} << 60;
  const index window = *spec.window > 0 ? std::min(*spec.window, block) : block;
  return 2 * real(KvCache::room_needed(kWithoutEnd, window)) * real(spec.width);
}

constexpr LayerKind kLayers[] = {
    recurrent("rnn", RecurrentKind::kRnn, Reads::kForward),
    recurrent("gru", RecurrentKind::kGru, Reads::kForward),
    recurrent("lstm", RecurrentKind::kLstm, Reads::kForward),
    recurrent("sru", RecurrentKind::kSru, Reads::kForward),
    recurrent("birnn", RecurrentKind::kRnn, Reads::kBothWays),
    recurrent("bigru", RecurrentKind::kGru, Reads::kBothWays),
    recurrent("bilstm", RecurrentKind::kLstm, Reads::kBothWays),
    recurrent("bisru", RecurrentKind::kSru, Reads::kBothWays),
    {.name = "attention-rnn",
     .settings = "width layers heads window joints",
     .is_recurrent = true,
     .shows_heads = true,
     .mixes = true,
     .fill = fill_attention_rnn,
     .out = own_width,
     .make = make_attention_rnn,
     .kept = kept_by_attention_rnn},
    {.name = "conv",
     .settings = "width layers dilation gated joints activation residual plain",
     .numbered = true,
     .mixes = true,
     .sum = LayerSum::kUsual,
     .fill = fill_convolution,
     .out = own_width,
     .make = make_convolution,
     .kept = kept_by_convolution},
    {.name = "dwconv",
     .settings = "layers joints residual plain",
     .numbered = true,
     .mixes = true,
     .sum = LayerSum::kUsual,
     .fill = fill_depthwise,
     .out = same_width,
     .make = make_depthwise,
     .kept = kept_by_convolution},
    {.name = "textcnn",
     .settings = "width",
     .windowed = true,
     .is_last = true,
     .fill = fill_text_cnn,
     .out = text_cnn_width,
     .make = make_text_cnn},
    {.name = "attention",
     .settings = "layers dilation heads kv-heads head-dim window strided scale no-output position "
                 "joints residual plain",
     .attends = true,
     .shows_heads = true,
     .has_first_step = true,
     .sum = LayerSum::kUsual,
     .fill = fill_attention,
     .out = attention_width,
     .make = make_attention,
     .kept = kept_by_attention},
    {.name = "ff",
     .settings = "layers joints ff activation residual plain",
     .feeds_forward = true,
     .sum = LayerSum::kUsual,
     .fill = fill_feed_forward,
     .out = same_width,
     .make =
         [](const LayerParts& p, const ParameterScope& scope) {
           return feed_forward_layer(feed_forward_options(p.config, p.depth), p.residual, scope);
         }},
    {.name = "transformer",
     .settings = "layers dilation heads kv-heads head-dim window strided scale position joints ff "
                 "activation",
     .attends = true,
     .shows_heads = true,
     .feeds_forward = true,
     .sum = LayerSum::kInside,
     .fill =
         [](Spec& spec, const EncoderConfig& c, index in) {
           fill_attention(spec, c, in);
           fill_feed_forward(spec, c, in);
         },
     .out = same_width,
     .make = make_transformer,
     .kept = kept_by_attention},
};

}  // namespace

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

// Layers with a window may have angles of their own, which nothing stretches.
bool has_local_angles(const EncoderConfig& c, const Spec& spec) {
  return c.rope_local_base > 0 && *spec.window > 0;
}

std::optional<double> score_scale(const EncoderConfig& c, const Spec& spec) {
  if (spec.scale) return spec.scale;
  return c.score_scale > 0 ? std::optional(c.score_scale) : std::nullopt;
}

AttentionVariant variant_of(const EncoderConfig& c, const Spec& spec) {
  const bool rotary = c.position == PositionKind::kRotary, local = has_local_angles(c, spec);
  return {.score = c.score,
          .scale = score_scale(c, spec),
          .log_n_scale = c.log_n_scale ? static_cast<double>(c.block) : 0,
          .softcap = c.softcap,
          .t5_causal = c.sight == Sight::kPast,
          .t5_max_distance = c.t5_max_distance,
          .norm = c.attention_norm,
          .rotary = rotary ? RotaryPairs::kHalves : RotaryPairs::kNone,
          .rotary_base = local ? c.rope_local_base : c.rope_base,
          .rotary_amplitude = local ? 1 : c.rotary_amplitude};
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
  return {.width = width,
          .kind = c.norm,
          .variant = c.ln_variant,
          .bias = biases(c),
          .epsilon = c.norm_epsilon};
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
  o.qk_epsilon = c.norm_epsilon;
  o.variant = variant_of(c, spec);
  if (!has_local_angles(c, spec)) o.rotary_divisors = divisors_of(c);
  o.parts = parts_of(c);
  return o;
}

Parameter* shared_distances(const EncoderConfig& c, const ParameterScope& scope) {
  if (!c.shares_distances) return nullptr;
  return &scope["distances"].add("weight", {c.t5_buckets, c.heads}, Init::zeros(), Decay::kNo);
}

void share_distances(MultiHeadAttentionOptions& options, Parameter* distances) {
  for (LayerPart& part : options.parts) {
    if (part.tensor == "t5") part.shared = distances;
  }
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

std::optional<ExpertsOptions> experts_options(const EncoderConfig& c, index depth) {
  if (c.experts == 0) return std::nullopt;
  return ExpertsOptions{.width = c.width,
                        .hidden = c.ff,
                        .experts = c.experts,
                        .chosen = c.experts_per_token,
                        .input_init = matrix_init(c, c.width, c.ff),
                        .output_init = output_init(c, c.ff, depth)};
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

std::span<const LayerKind> layer_kinds() { return kLayers; }

const LayerKind& layer_kind(std::string_view name) {
  const LayerKind* const row = find_named(kLayers, name);
  if (row == nullptr) fail(ErrorCode::kInternal, "encoder: there is no layer {}", name);
  return *row;
}

bool LayerKind::has_setting(std::string_view setting) const {
  const std::vector<std::string_view> words = axis_words(settings);
  return std::find(words.begin(), words.end(), setting) != words.end();
}

}  // namespace fovea
