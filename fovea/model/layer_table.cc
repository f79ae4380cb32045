// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/layer_table.h"

#include <algorithm>

#include "fovea/base/option.h"
#include "fovea/kernel/sru.h"
#include "fovea/model/layer_options.h"
#include "fovea/nn/depthwise.h"
#include "fovea/nn/kv_cache.h"
#include "fovea/parts/axes.h"

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
  return attention_rnn_layer(options, scope);
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
  return text_cnn_layer({.in = p.config.width, .out = p.spec.width, .widths = p.spec.widths},
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

std::unique_ptr<EncoderLayer> make_attention(const LayerParts& p, const ParameterScope& scope) {
  return attention_layer(attention_options(p.config, p.spec, p.depth), p.residual, scope);
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
  return block_layer({attention_options(p.config, p.spec, p.depth),
                      feed_forward_options(p.config, p.depth), p.residual.value()},
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
