// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_memory.h"

#include <algorithm>
#include <array>

#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/gemm.h"
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

// Two norms, three projections of the model's width, two sums. A layer norm also keeps two numbers
// per row, an RMS norm one.
double layer_columns(const LanguageModelConfig& c, const Widths& w, TapeMode mode) {
  const double norms = c.norm == NormKind::kLayer ? 4 : 2;
  // QK-norm makes q and k anew, and keeps a number for each head.
  const double kv_heads = static_cast<double>(c.kv_heads);
  const double qk_norm =
      c.qk_norm ? w.queries + kv_heads * static_cast<double>(c.head_dim) + w.heads + kv_heads : 0;
  const double forward = 6 * w.model + w.all + w.queries + w.hidden + norms + qk_norm;
  if (mode == TapeMode::kInference) return forward;
  // The log-sum-exp of each head, in two parts, and the derivative of the activation; for ReLU it
  // follows from the result.
  return forward + 2 * w.heads + (c.activation == Activation::kRelu ? 0 : w.hidden);
}

// The gradients that exist at once while backward passes a layer. Buffers of one size are reused,
// so each size counts as often as it is needed at the same time.
double gradient_columns(const Widths& w) { return 2 * w.model + w.queries + w.all + w.hidden; }

struct WeightShape {
  index out, in;
};

std::array<WeightShape, 4> weights_of_layer(const LanguageModelConfig& c) {
  const index q = c.heads * c.head_dim, all = q + 2 * c.kv_heads * c.head_dim;
  return {{{all, c.width}, {c.width, q}, {c.ff, c.width}, {c.width, c.ff}}};
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
  const Widths w(c);
  constexpr double kRowNames = 5;  // a position and the name of its dropout mask, in floats
  const double layers = static_cast<double>(c.layers) * layer_columns(c, w, load.mode);
  double ends = w.model + kRowNames;  // embedding
  // e, p and [e; p], in training also the gradient of [e; p].
  if (c.position_join == PositionJoin::kConcatenate) {
    ends += (load.mode == TapeMode::kTrain ? 6 : 4) * w.model;
  }
  if (c.norm_position == NormPosition::kPre) ends += w.model + 2;
  if (load.mode == TapeMode::kTrain) {
    ends += w.model + gradient_columns(w);  // the loss computes its gradient at once
    if (c.dropout > 0) ends += w.model;
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
  double layer = 0;
  for (const WeightShape& weight : weights_of_layer(c)) layer += of(weight);
  const bool joins = c.position_join == PositionJoin::kConcatenate;
  return kFloat * (static_cast<double>(c.layers) * layer + of({c.vocabulary, c.width}) +
                   (joins ? of({c.width, 2 * c.width}) : 0));
}

double scratch_bytes(const Context& context, const LanguageModelConfig& config,
                     const TapeLoad& load) {
  const LanguageModelConfig c = resolve(config);
  // Bytes per thread for copies of tiles in products and in attention, and for the stack.
  constexpr double kOfThread = 1 << 20;
  return context.threads() * (kOfThread + attention_scratch(c, load)) +
         std::max(loss_scratch(c, load), made_row_bytes(c, load) + observed_bytes(c, load));
}

double cache_bytes(const LanguageModelConfig& config, index tokens) {
  const LanguageModelConfig c = resolve(config);
  index rows = 0;
  for (const index window : layer_windows(c)) {
    rows += std::min(tokens, KvCache::room_needed(c.block, window));
  }
  return kFloat * 2 * static_cast<double>(rows) * static_cast<double>(c.kv_heads * c.head_dim);
}

}  // namespace fovea
