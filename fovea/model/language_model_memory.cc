// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/gemm.h"
#include "fovea/model/encoder_sizes.h"
#include "fovea/nn/kv_cache.h"

namespace fovea {

namespace {

constexpr double kFloat = sizeof(float);

// The widths of the values in one layer, as doubles, which cannot overflow when multiplied.
struct Widths {
  explicit Widths(const LanguageModelConfig& c)
      : model(static_cast<double>(c.width)),
        hidden(static_cast<double>(c.ff)),
        queries(static_cast<double>(c.heads * c.head_dim)),
        all(queries + 2 * static_cast<double>(c.kv_heads * c.head_dim)),
        heads(static_cast<double>(c.heads)) {}

  double model, hidden, queries, all, heads;
};

// What a tape keeps of attention for each token: q, k and v, the heads' results and their
// projection; in training also the log-sum-exp of each head, in two parts. QK-norm makes q and k
// anew, and keeps a number for each head.
double attention_columns(const LanguageModelConfig& c, const Widths& w, TapeMode mode) {
  const double kv_heads = static_cast<double>(c.kv_heads);
  const double qk_norm =
      c.qk_norm ? w.queries + kv_heads * static_cast<double>(c.head_dim) + w.heads + kv_heads : 0;
  return w.all + w.queries + w.model + qk_norm + (mode == TapeMode::kTrain ? 2 * w.heads : 0);
}

// Of a feed-forward network: both results and, in training, the derivative of the activation; for
// ReLU it follows from the result.
double feed_forward_columns(const LanguageModelConfig& c, const Widths& w, TapeMode mode) {
  const bool slope = mode == TapeMode::kTrain && c.activation != Activation::kRelu;
  return w.hidden * (slope ? 2 : 1) + w.model;
}

// Of a residual connection of `columns`: the norm and the sum. A layer norm also keeps two numbers
// per row, an RMS norm one.
double residual_columns(const LanguageModelConfig& c, double columns) {
  return 2 * columns + (c.norm == NormKind::kLayer ? 2 : 1);
}

// Columns of the gates that a recurrent layer keeps, for each of its H (kernel/recurrent.h, sru.h).
double gate_blocks(const SizedLayer& layer, double in) {
  switch (layer.spec.cell) {
    case RecurrentKind::kRnn:
      return 1;
    case RecurrentKind::kSru:
      return in == static_cast<double>(layer.spec.width) ? 3 : 4;
    default:
      return 4;
  }
}

// Rows that a recurrent layer keeps are an odd number of cache lines apart.
double odd_lines(double columns) {
  constexpr double kLine = 64 / kFloat;
  const double lines = std::ceil(columns / kLine);
  return kLine * (std::fmod(lines, 2) == 0 ? lines + 1 : lines);
}

// States and, in training, gates and, of LSTM and SRU, cells.
double recurrent_columns(const SizedLayer& layer, double in, TapeMode mode) {
  const auto out = static_cast<double>(layer.out);
  if (mode == TapeMode::kInference) return out;
  const RecurrentKind cell = layer.spec.cell;
  const double cells = cell == RecurrentKind::kLstm ? 2 : cell == RecurrentKind::kSru ? 1 : 0;
  return out + odd_lines(out * gate_blocks(layer, in)) + cells * odd_lines(out);
}

// The result and, if gated, its two halves. In training also what the products read: of width 3
// four planes of half the rows and two sums of taps (kernel/winograd.h), else the rows between
// zeros.
double convolution_columns(const SizedLayer& layer, double in, const TapeLoad& load) {
  const EncoderLayerSpec& s = layer.spec;
  const auto out = static_cast<double>(layer.out);
  const double result = s.gated ? 3 * out : out;
  if (load.mode == TapeMode::kInference) return result;
  const bool slope = !s.gated && *s.activation != Activation::kRelu;
  const bool pairs = s.kernel == 3 && s.dilation == 1;
  const double sums = 2 * in * out * (s.gated ? 2 : 1) / static_cast<double>(load.tokens);
  return result + (slope ? out : 0) + (pairs ? 2 * in + sums : in);
}

// States and their attention; with projections also q, k, v and the last one. In training also the
// gates, which are the states once more, and the log-sum-exp of each head in two parts.
double attention_rnn_columns(const SizedLayer& layer, TapeMode mode) {
  const auto H = static_cast<double>(layer.spec.width);
  const double projected = layer.spec.heads > 1 ? 4 * H : 0;
  const double trained = odd_lines(H) + 2 * static_cast<double>(layer.spec.heads);
  return 2 * H + projected + (mode == TapeMode::kTrain ? trained : 0);
}

// What a tape keeps of one layer of the stage, for each token. `in` is the width that it reads.
double layer_columns(const LanguageModelConfig& config, const SizedLayer& layer, double in,
                     const TapeLoad& load) {
  using enum EncoderLayerKind;
  const TapeMode mode = load.mode;
  const LanguageModelConfig c = config_of_layer(config, layer);
  const Widths w(c);
  const double residual = *layer.spec.residual ? residual_columns(c, in) : 0;
  switch (layer.spec.kind) {
    case kTransformer:
      return attention_columns(c, w, mode) + feed_forward_columns(c, w, mode) +
             2 * residual_columns(c, w.model);
    case kAttention:
      return attention_columns(c, w, mode) + residual;
    case kFeedForward:
      return feed_forward_columns(c, w, mode) + residual;
    case kConvolution:
      return convolution_columns(layer, in, load) + residual;
    case kAttentionRnn:
      return attention_rnn_columns(layer, mode);
    case kRecurrent:
      break;
  }
  return recurrent_columns(layer, in, mode) + residual;
}

// The gradients that exist at once while backward passes a layer. Buffers of one size are reused,
// so each size counts as often as it is needed at the same time.
double gradient_columns(const LanguageModelConfig& config, const SizedLayer& layer) {
  const LanguageModelConfig c = config_of_layer(config, layer);
  const Widths w(c);
  switch (layer.spec.kind) {
    case EncoderLayerKind::kTransformer:
      return 2 * w.model + w.queries + w.all + w.hidden;
    case EncoderLayerKind::kAttention:
      return 2 * w.model + w.queries + w.all;
    case EncoderLayerKind::kFeedForward:
      return 2 * w.model + w.hidden;
    case EncoderLayerKind::kAttentionRnn:
      if (layer.spec.heads > 1) return 5 * static_cast<double>(layer.out);
      break;
    case EncoderLayerKind::kConvolution:
      if (layer.spec.gated) return w.model + 2 * static_cast<double>(layer.out);
      break;
    default:
      break;
  }
  // The result and the input; the gradients of gates lie where the gates were. A residual sum hands
  // its gradient to both of its sides.
  return w.model + static_cast<double>(layer.out) + (*layer.spec.residual ? w.model : 0);
}

struct WeightShape {
  index out, in;
};

// The weights of the first layer of a stage; further ones read `out` columns.
std::vector<WeightShape> weights_of_layer(const SizedLayer& layer, index in) {
  using enum EncoderLayerKind;
  const EncoderLayerSpec& s = layer.spec;
  const index q = s.heads * s.head_dim, all = q + 2 * s.kv_heads * s.head_dim, H = s.width;
  const std::vector<WeightShape> attention = {{all, in}, {in, q}};
  const std::vector<WeightShape> network = {{s.ff, in}, {in, s.ff}};
  switch (s.kind) {
    case kTransformer:
      return {attention[0], attention[1], network[0], network[1]};
    case kAttention:
      return attention;
    case kFeedForward:
      return network;
    case kConvolution:
      return {{layer.out * (s.gated ? 2 : 1), s.kernel * in}};
    case kAttentionRnn:
      if (s.heads > 1) return {{H, in}, {H, H}, {3 * H, H}, {H, H}};
      return {{H, in}, {H, H}};
    case kRecurrent:
      break;
  }
  const index gates = 4 * H * (s.bidirectional ? 2 : 1);
  return {{gates, in}, {gates, H}};
}

// The values that a session of one layer keeps of `tokens` tokens: keys and values, or the last
// rows that a convolution sees.
double cache_values(const EncoderLayerSpec& s, index in, index block, index tokens) {
  constexpr index kWithoutEnd = index{1} << 60;
  if (s.kind == EncoderLayerKind::kConvolution) {
    return static_cast<double>(s.kernel - 1) * static_cast<double>(s.dilation) *
           static_cast<double>(in);
  }
  if (s.kind == EncoderLayerKind::kAttentionRnn) {
    const index window = *s.window > 0 ? std::min(*s.window, block) : block;
    return 2 * static_cast<double>(KvCache::room_needed(kWithoutEnd, window)) *
           static_cast<double>(s.width);
  }
  if (s.kv_heads == 0) return 0;
  const index held = std::min(tokens, KvCache::room_needed(block, *s.window));
  return 2 * static_cast<double>(held) * static_cast<double>(s.kv_heads * s.head_dim);
}

// Calls f(layer, columns that it reads) for every layer.
template <class F>
void for_each_layer(const LanguageModelConfig& c, F&& f) {
  for (const SizedStage& stage : sized_stages(c)) {
    for (const SizedLayer& layer : stage.branches) {
      for (index n = 0; n < layer.spec.layers; ++n) f(layer, n == 0 ? layer.in : layer.out);
    }
  }
}

// Panels have as many columns as the registers hold; the last one is padded.
double packed_values(index rows, index columns, index lanes) {
  const index panels = (columns + lanes - 1) / lanes;
  return static_cast<double>(panels * lanes) * static_cast<double>(rows);
}

// Scratch memory of attention in one thread: the backward pass packs q and do of the heads that
// share keys, and sums their dq, in rows of whole vectors. If threads share the keys of a head, two
// of them do so.
double attention_scratch(const LanguageModelConfig& c, const TapeLoad& load) {
  if (load.mode == TapeMode::kInference) return 0;
  constexpr index kVector = 16;
  const index width = (c.head_dim + kVector - 1) / kVector * kVector;
  const index T = std::min(c.block, load.tokens);
  return kFloat * static_cast<double>(c.heads / c.kv_heads) * static_cast<double>(T) *
         static_cast<double>(1 + 4 * width);
}

// The rows of q and k that a call makes for scores that are no plain dot products, in training with
// their gradients. A cache holds up to `block` keys, whose rows are made at each step.
double made_row_bytes(const LanguageModelConfig& c, const TapeLoad& load) {
  const bool makes = c.position == PositionKind::kRotary ||
                     c.score == AttentionScoreKind::kCosine ||
                     c.score == AttentionScoreKind::kConcat;
  if (!makes) return 0;
  const bool infers = load.mode == TapeMode::kInference;
  const index width = c.head_dim + (c.score == AttentionScoreKind::kConcat ? 1 : 0);
  const index keys = infers ? std::max(load.tokens, c.block) : load.tokens;
  const auto rows = static_cast<double>(load.tokens * c.heads + keys * c.kv_heads);
  return kFloat * (infers ? 1 : 2) * rows * static_cast<double>(width);
}

// The numbers of each head and query that are observed. Without a norm, o is computed once more.
double observed_bytes(const LanguageModelConfig& c, const TapeLoad& load) {
  if (!load.observes) return 0;
  constexpr index kNumbers = 3;
  const bool again = c.attention_norm == AttentionNormKind::kNone;
  return kFloat * static_cast<double>(load.tokens) *
         static_cast<double>(c.heads * (kNumbers + (again ? c.head_dim : 0)));
}

// Scratch memory of the fused output projection and loss: the logits of a chunk of rows, and
// partial sums of the gradient of the bias.
double loss_scratch(const LanguageModelConfig& c, const TapeLoad& load) {
  const auto rows = static_cast<double>(logit_rows<float>(load.tokens, c.vocabulary));
  constexpr double kMostSums = 32;  // as add_chunk_sums has them
  const double sums = c.bias && !c.tie && load.mode == TapeMode::kTrain ? kMostSums : 0;
  return kFloat *
         (static_cast<double>(c.vocabulary) * (rows + sums) + static_cast<double>(load.tokens));
}

}  // namespace

double activation_bytes(const LanguageModelConfig& config, const TapeLoad& load) {
  const LanguageModelConfig c = resolve(config);
  const auto width = static_cast<double>(c.width);
  constexpr double kRowNames = 5;  // a position and the name of its dropout mask, in floats
  double layers = 0, gradients = 0;
  for_each_layer(c, [&](const SizedLayer& layer, index in) {
    layers += layer_columns(c, layer, static_cast<double>(in), load);
    gradients = std::max(gradients, gradient_columns(c, layer));
  });
  double ends = width + kRowNames;  // embedding
  // e, p and [e; p], in training also the gradient of [e; p].
  if (c.position_join == PositionJoin::kConcatenate) {
    ends += (load.mode == TapeMode::kTrain ? 6 : 4) * width;
  }
  const std::vector<SizedStage> stages = sized_stages(c);
  for (const SizedStage& stage : stages) {
    if (stage.branches.size() == 1) continue;  // the results side by side, and their projection
    const double copies = load.mode == TapeMode::kTrain ? 2 : 1;  // in training the gradient, too
    for (const SizedLayer& layer : stage.branches) ends += copies * static_cast<double>(layer.out);
    ends += static_cast<double>(stage.out);
  }
  const auto last = static_cast<double>(stages.back().out);
  if (ends_with_norm(c, stages)) ends += last + 2;
  if (load.mode == TapeMode::kTrain) {
    ends += last + gradients;  // the loss computes its gradient at once
    if (c.dropout > 0) ends += width;
  }
  return kFloat * static_cast<double>(load.tokens) * (layers + ends);
}

double packed_bytes(const LanguageModelConfig& config, const TapeLoad& load) {
  const LanguageModelConfig c = resolve(config);
  const bool trains = load.mode == TapeMode::kTrain;
  if (trains && load.tokens <= kRowsInPlace) return 0;
  const index lanes = panels_in_place<float>({nullptr, 1, 1}).lanes;
  const auto of = [&](const WeightShape& w) {
    const bool both = trains && !reads_well_in_place<float>({nullptr, w.out, w.in});
    return packed_values(w.in, w.out, lanes) + (both ? packed_values(w.out, w.in, lanes) : 0);
  };
  double layers = 0;
  for_each_layer(c, [&](const SizedLayer& layer, index in) {
    for (const WeightShape& weight : weights_of_layer(layer, in)) layers += of(weight);
  });
  const bool joins = c.position_join == PositionJoin::kConcatenate;
  return kFloat * (layers + of({c.vocabulary, c.width}) + (joins ? of({c.width, 2 * c.width}) : 0));
}

double scratch_bytes(const Context& context, const LanguageModelConfig& config,
                     const TapeLoad& load) {
  const LanguageModelConfig c = resolve(config);
  // Bytes per thread for copies of tiles in products and in attention, and for the stack.
  constexpr double kOfThread = 1 << 20;
  double of_thread = 0, of_call = loss_scratch(c, load);
  for_each_layer(c, [&](const SizedLayer& layer, index) {
    if (layer.spec.head_dim == 0) return;
    const LanguageModelConfig own = config_of_layer(c, layer);
    of_thread = std::max(of_thread, attention_scratch(own, load));
    of_call = std::max(of_call, made_row_bytes(own, load) + observed_bytes(own, load));
  });
  return context.threads() * (kOfThread + of_thread) + of_call;
}

double gradient_bytes(const LanguageModelConfig& config, index tokens) {
  const LanguageModelConfig c = resolve(config);
  const double all = kFloat * static_cast<double>(parameter_count(c));
  if (c.tie) return all;
  // The gradient of the embeddings has the rows of an update, in memory that grows by half (the old
  // one exists until it is copied). The optimizer has two numbers for each row of the table.
  const auto rows = static_cast<double>(c.vocabulary);
  const double used = std::min(rows, static_cast<double>(tokens));
  const double held = std::min(rows, 1.5 * used) + used;
  return all + kFloat * ((held - rows) * static_cast<double>(c.width) + 2 * rows);
}

double cache_bytes(const LanguageModelConfig& config, index tokens) {
  const LanguageModelConfig c = resolve(config);
  double bytes = 0;
  for_each_layer(c, [&](const SizedLayer& layer, index) {
    const EncoderLayerSpec& s = layer.spec;
    bytes += kFloat * cache_values(s, layer.in, c.block, tokens);
  });
  return bytes;
}

}  // namespace fovea
