// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_memory.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fovea/kernel/gemm.h"

namespace fovea {

namespace {

using namespace detail;

constexpr double kFloat = sizeof(float);

// The widths of the values in one layer, as doubles, which cannot overflow when multiplied.
struct Widths {
  explicit Widths(const EncoderConfig& c)
      : model(static_cast<double>(c.width)),
        hidden(static_cast<double>(c.ff)),
        queries(static_cast<double>(c.heads * c.head_dim)),
        all(queries + 2 * static_cast<double>(c.kv_heads * c.head_dim)),
        heads(static_cast<double>(c.heads)) {}

  double model, hidden, queries, all, heads;
};

// The columns of floats that take as much memory as these, rounded or not.
double kept(double columns, bool rounded) { return rounded ? columns / 2 : columns; }

// What the tape keeps rounded of a layer and of its gradients.
struct Rounded {
  Rounded(const EncoderConfig& c, const SizedLayer& layer, const TapeLoad& load)
      : qkv(attention_keeps_rounded(c, layer, load)),
        heads(qkv && !layer.spec.no_output),
        hidden(keeps_rounded(load) && c.activation != Activation::kRelu) {}

  bool qkv, heads, hidden;
};

// What a tape keeps of attention for each token: q, k and v, and the heads' results; in training
// also the log-sum-exp of each head, in two parts. QK-norm makes q and k anew, and keeps a number
// for each head.
double attention_columns(const EncoderConfig& c, const Widths& w, const Rounded& rounded,
                         TapeMode mode) {
  const double kv_heads = static_cast<double>(c.kv_heads);
  const double qk_norm =
      c.qk_norm ? w.queries + kv_heads * static_cast<double>(c.head_dim) + w.heads + kv_heads : 0;
  return kept(w.all, rounded.qkv) + kept(w.queries, rounded.heads) + qk_norm +
         (mode == TapeMode::kTrain ? 2 * w.heads : 0);
}

// Of a feed-forward network: both results and, in training, the derivative of the activation; for
// ReLU it follows from the result.
double feed_forward_columns(const EncoderConfig& c, const Widths& w, const Rounded& rounded,
                            TapeMode mode) {
  const bool slope = mode == TapeMode::kTrain && c.activation != Activation::kRelu;
  return kept(w.hidden, rounded.hidden) + (slope ? w.hidden : 0) + w.model;
}

// Of a residual connection of `columns`: the norm and the sum. A layer norm also keeps two numbers
// per row, an RMS norm one.
double residual_columns(const EncoderConfig& c, double columns) {
  return 2 * columns + (c.norm == NormKind::kLayer ? 2 : 1);
}

// States and, in training, what backward reads.
double recurrent_columns(const SizedLayer& layer, TapeMode mode) {
  return static_cast<double>(layer.out) + (mode == TapeMode::kTrain ? gate_columns(layer) : 0);
}

// The result and, if gated, its two halves. In training also what the products read: the rows
// between zeros or, computed by pairs (kernel/winograd.h), four planes of half the rows and two
// sums of taps.
double convolution_columns(const EncoderConfig& c, const SizedLayer& layer, const TapeLoad& load) {
  const EncoderLayerSpec& s = layer.spec;
  const index made = columns_made(layer);
  const auto out = static_cast<double>(layer.out), read = static_cast<double>(layer.in);
  const double result = s.gated ? 3 * out : out;
  if (load.mode == TapeMode::kInference) return result;
  const bool slope = !s.gated && *s.activation != Activation::kRelu;
  const bool pairs = is_computed_by_pairs(layer, load);
  const double sums = 2 * read * static_cast<double>(made) / static_cast<double>(load.tokens);
  const double spread = s.kernel > 1 ? read * (1 + gap_rows(c, s, load)) : 0;
  const double products = pairs ? 2 * read + sums : spread;
  return result + (slope ? out : 0) + products;
}

// States and their attention; with projections also q, k, v and the last one. In training also the
// gates, which are the states once more, and the log-sum-exp of each head in two parts.
double attention_rnn_columns(const SizedLayer& layer, TapeMode mode) {
  const auto H = static_cast<double>(layer.spec.width);
  const double projected = layer.spec.heads > 1 ? 4 * H : 0;
  const double trained = odd_lines(H) + 2 * static_cast<double>(layer.spec.heads);
  return 2 * H + projected + (mode == TapeMode::kTrain ? trained : 0);
}

// What a tape keeps of one layer, for each token. `number` is its number among those of its spec.
double layer_columns(const EncoderConfig& config, const SizedLayer& layer, index number,
                     const TapeLoad& load) {
  using enum EncoderLayerKind;
  const TapeMode mode = load.mode;
  const EncoderConfig c = config_of_layer(config, layer);
  const Widths w(c);
  const Rounded rounded(c, layer, load);
  const auto in = static_cast<double>(layer.in);
  const double residual = *layer.spec.residual ? residual_columns(c, in) : 0;
  switch (layer.spec.kind) {
    case kTransformer:
      return attention_columns(c, w, rounded, mode) + w.model +
             feed_forward_columns(c, w, rounded, mode) + 2 * residual;
    case kAttention:
      return attention_columns(c, w, rounded, mode) + (layer.spec.no_output ? 0 : w.model) +
             residual;
    case kFeedForward:
      return feed_forward_columns(c, w, rounded, mode) + residual;
    case kConvolution:
      return convolution_columns(c, layer, load) + residual;
    case kAttentionRnn:
      return attention_rnn_columns(layer, mode);
    case kRecurrent:
      break;
  }
  // Cells one above the other have one residual sum, and dropout between them.
  const double dropped = mode == TapeMode::kTrain && config.dropout > 0 ? in : 0;
  return recurrent_columns(layer, mode) + (number == 0 ? residual : dropped);
}

// The columns of each gradient that exists while backward passes a layer.
std::vector<double> gradient_columns(const EncoderConfig& config, const SizedLayer& layer,
                                     const TapeLoad& load) {
  const EncoderConfig c = config_of_layer(config, layer);
  const Widths w(c);
  const Rounded rounded(c, layer, load);
  const double all = kept(w.all, rounded.qkv), queries = kept(w.queries, rounded.heads),
               hidden = kept(w.hidden, rounded.hidden);
  const auto out = static_cast<double>(layer.out);
  switch (layer.spec.kind) {
    case EncoderLayerKind::kTransformer:
      return {w.model, w.model, queries, all, hidden};
    case EncoderLayerKind::kAttention:
      if (layer.spec.no_output && !*layer.spec.residual) {  // that of x may lie where that of o was
        if (w.model == queries) return {queries, all};
        return {queries, all, w.model};
      }
      return {w.model, w.model, queries, all};
    case EncoderLayerKind::kFeedForward:
      return {w.model, w.model, hidden};
    case EncoderLayerKind::kAttentionRnn:
      if (layer.spec.heads > 1) return {out, out, out, out, out};
      break;
    case EncoderLayerKind::kConvolution:
      if (!layer.spec.gated) break;
      // The gradient of the result has gone when that of the input is made.
      if (w.model == out) return {2 * out, out};
      return {2 * out, out, w.model};
    default:
      break;
  }
  // The result and the input; the gradients of gates lie where the gates were. A residual sum hands
  // its gradient to both of its sides.
  if (*layer.spec.residual) return {w.model, w.model, out};
  return {w.model, out};
}

// Memory of one size is used again, so of each size there is as much as the layer that needs most.
class GradientColumns {
 public:
  void add_layer(const std::vector<double>& columns) {
    std::map<double, int> counts;
    for (const double one : columns) most_[one] = std::max(most_[one], ++counts[one]);
  }
  double sum() const {
    double sum = 0;
    for (const auto& [columns, count] : most_) sum += columns * count;
    return sum;
  }

 private:
  std::map<double, int> most_;
};

std::vector<WeightShape> weights_of_layer(const SizedLayer& layer) {
  using enum EncoderLayerKind;
  const EncoderLayerSpec& s = layer.spec;
  const index in = layer.in;
  const index q = s.heads * s.head_dim, all = q + 2 * s.kv_heads * s.head_dim, H = s.width;
  const std::vector<WeightShape> attention = {{all, in}, {in, q}};
  const std::vector<WeightShape> network = {{s.ff, in}, {in, s.ff}};
  switch (s.kind) {
    case kTransformer:
      return {attention[0], attention[1], network[0], network[1]};
    case kAttention:
      return s.no_output ? std::vector{attention[0]} : attention;
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
  return {{gates, in}, {gates, H, true}};
}

// Panels have as many columns as the registers hold; the last one is padded. A pair of bfloat16
// takes as much as a float.
double packed_values(index rows, index columns, Operands operands) {
  const index lanes = panels_in_place<float>({nullptr, 1, 1}).lanes;
  const index panels = (columns + lanes - 1) / lanes;
  const index steps = operands == Operands::kPaired ? rows / 2 + rows % 2 : rows;
  return static_cast<double>(panels * lanes) * static_cast<double>(steps);
}

double joined_columns(const SizedStage& stage) {
  double columns = 0;
  for (const SizedLayer& layer : stage.branches) columns += static_cast<double>(layer.out);
  return columns;
}

// Backward splits the gradient of the join, then passes the branches, the last one first: beside
// its own gradients are those of the results of branches that it has not passed.
void add_branches(const EncoderConfig& c, const SizedStage& stage, const TapeLoad& load,
                  GradientColumns& gradients) {
  const double joined = joined_columns(stage);
  std::vector<double> waiting;
  if (stage.branches.size() > 1) gradients.add_layer({static_cast<double>(stage.out), joined});
  for (const SizedLayer& branch : stage.branches) {
    SizedLayer layer = branch;
    const auto out = static_cast<double>(layer.out);
    for (index n = 0; n < layer.spec.layers; ++n) {
      std::vector<double> columns = gradient_columns(c, layer, load);
      // The branches behind it have begun the gradient of x, and an attention RNN has one of its
      // states besides.
      const bool is_last = &branch == &stage.branches.back();
      if (!is_last && layer.spec.kind == EncoderLayerKind::kAttentionRnn) columns.push_back(out);
      columns.insert(columns.end(), waiting.begin(), waiting.end());
      gradients.add_layer(columns);
      layer.in = layer.out;
      layer.projected_once = false;
    }
    waiting.push_back(out);
  }
  if (stage.branches.size() == 1) return;
  waiting.push_back(joined);
  gradients.add_layer(waiting);
}

// Of all layers and of the joins of those that lie side by side.
double layer_columns(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                     const TapeLoad& load) {
  double columns = 0;
  for_each_layer(stages, [&](const SizedLayer& layer, index number) {
    columns += layer_columns(c, layer, number, load);
  });
  for (const SizedStage& stage : stages) {
    // The results side by side, and their projection.
    if (stage.branches.size() > 1)
      columns += joined_columns(stage) + static_cast<double>(stage.out);
  }
  return columns;
}

// Where training projects each different token once: two numbers of a token, and q, k and v of the
// different ones beside those of all (at most as many). A position has a number, a row, q, k and v,
// and the gradients of these; that of a row is needed only if it is learned.
double distinct_columns(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                        const TapeLoad& load) {
  const auto projected = static_cast<double>(projected_once_columns(c, stages));
  if (load.mode != TapeMode::kTrain || projected == 0) return 0;
  if (!adds_position_rows(c.position)) return projected + 2;
  const auto width = static_cast<double>(c.width);
  const double of_row = c.position == PositionKind::kLearned ? 2 * width : width;
  const double share = static_cast<double>(std::min(c.block, load.tokens)) /
                       static_cast<double>(std::max<index>(load.tokens, 1));
  return projected + 2 + share * (1 + of_row + 2 * projected);
}

}  // namespace

double encoder_columns(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                       const TapeLoad& load) {
  const auto width = static_cast<double>(c.width);
  constexpr double kRowNames = 5;  // a position and the name of its dropout mask, in floats
  double columns = width + kRowNames + layer_columns(c, stages, load);
  // e, p and [e; p], in training also the gradient of [e; p].
  if (c.position_join == PositionJoin::kConcatenate) {
    columns += (load.mode == TapeMode::kTrain ? 6 : 4) * width;
  }
  if (ends_with_norm(c, stages)) columns += static_cast<double>(last_width(c, stages)) + 2;
  if (load.mode == TapeMode::kTrain && c.dropout > 0) columns += width;
  return columns + distinct_columns(c, stages, load);
}

double encoder_gradient_columns(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                                const TapeLoad& load) {
  GradientColumns gradients;
  // Dropout behind the embedding makes one gradient from another.
  const auto width = static_cast<double>(c.width);
  gradients.add_layer(c.dropout > 0 ? std::vector{width, width} : std::vector{width});
  const auto projected = static_cast<double>(projected_once_columns(c, stages));
  if (projected > 0) gradients.add_layer({projected, projected});
  const auto last = static_cast<double>(last_width(c, stages));
  if (ends_with_norm(c, stages)) gradients.add_layer({last, last});
  for (const SizedStage& stage : stages) add_branches(c, stage, load, gradients);
  return gradients.sum();
}

bool packs_weights(const TapeLoad& load) {
  return load.mode == TapeMode::kInference || load.tokens > kRowsInPlace;
}

double packed_bytes(const WeightShape& w, const TapeLoad& load) {
  if (!packs_weights(load)) return 0;
  const Precision precision = w.in_steps ? Precision::kFloat32 : load.precision;
  const Operands operands = operands_of<float>(Context(1).with(precision));
  const bool both = load.mode == TapeMode::kTrain &&
                    !reads_well_in_place<float>({nullptr, w.out, w.in}, Form::kPlain, operands);
  return kFloat *
         (packed_values(w.in, w.out, operands) + (both ? packed_values(w.out, w.in, operands) : 0));
}

double encoder_packed_bytes(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                            const TapeLoad& load) {
  double bytes = 0;
  for_each_layer(stages, [&](const SizedLayer& layer, index) {
    for (const WeightShape& weight : weights_of_layer(layer)) bytes += packed_bytes(weight, load);
  });
  for (const SizedStage& stage : stages) {
    if (stage.branches.size() == 1) continue;
    index joined = 0;
    for (const SizedLayer& layer : stage.branches) joined += layer.out;
    bytes += packed_bytes({stage.out, joined}, load);
  }
  const bool joins = c.position_join == PositionJoin::kConcatenate;
  return bytes + (joins ? packed_bytes({c.width, 2 * c.width}, load) : 0);
}

}  // namespace fovea
