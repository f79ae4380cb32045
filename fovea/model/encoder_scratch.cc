// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_scratch.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/bfloat16.h"
#include "fovea/kernel/sru.h"
#include "fovea/kernel/winograd.h"
#include "fovea/simd/isa.h"

namespace fovea {

namespace {

constexpr double kFloat = sizeof(float);

// Whether a call of attention reads q, k and v rounded to bfloat16 (reads_rounded() of grad/ops.h).
bool attention_rounds(const EncoderConfig& c, const TapeLoad& load) {
  return keeps_rounded(load) && c.score == AttentionScoreKind::kDot &&
         c.attention_norm != AttentionNormKind::kNone;
}

}  // namespace

bool keeps_rounded(const TapeLoad& load) {
  return load.mode == TapeMode::kTrain && load.precision == Precision::kBFloat16 &&
         has_bfloat16_products();
}

bool attention_keeps_rounded(const EncoderConfig& c, const SizedLayer& layer,
                             const TapeLoad& load) {
  return attention_rounds(c, load) && !c.qk_norm && !layer.projected_once &&
         layer.spec.kind != EncoderLayerKind::kAttentionRnn;
}

namespace detail {

double odd_lines(double columns) {
  constexpr double kLine = 64 / kFloat;
  const double lines = std::ceil(columns / kLine);
  return kLine * (std::fmod(lines, 2) == 0 ? lines + 1 : lines);
}

double gate_columns(const SizedLayer& layer) {
  const RecurrentKind cell = layer.spec.cell;
  const double cells = cell == RecurrentKind::kLstm ? 2 : cell == RecurrentKind::kSru ? 1 : 0;
  const auto H = static_cast<double>(layer.spec.width);
  const double directions = layer.spec.bidirectional ? 2 : 1;
  const auto gates = static_cast<double>(gate_blocks(cell, layer.in, layer.spec.width));
  return directions * (odd_lines(H * gates) + cells * odd_lines(H));
}

index columns_made(const SizedLayer& layer) { return layer.out * (layer.spec.gated ? 2 : 1); }

bool is_computed_by_pairs(const SizedLayer& layer, const TapeLoad& load) {
  const EncoderLayerSpec& s = layer.spec;
  return load.mode == TapeMode::kTrain && load.precision == Precision::kFloat32 &&
         winograd_pays({.width = s.kernel, .dilation = s.dilation}, layer.in, columns_made(layer));
}

// Layers that see the whole text look to both sides.
double gap_rows(const EncoderConfig& c, const EncoderLayerSpec& s, const TapeLoad& load) {
  const index reach = (s.kernel - 1) * s.dilation;
  const index gap = c.sight == Sight::kPast ? reach : (reach + 1) / 2;
  const index least = (load.tokens + c.block - 1) / c.block;
  const index most = std::min(load.sequences, load.tokens);  // each has a token
  const index sequences = std::max({most, least, index{1}});
  return static_cast<double>(sequences + 1) * static_cast<double>(gap) /
         static_cast<double>(std::max<index>(load.tokens, 1));
}

}  // namespace detail

namespace {

using namespace detail;

// Scratch memory of attention in one thread: the backward pass packs q and do of the heads that
// share keys, and sums their dq, in rows of whole vectors. If threads share the keys of a head, two
// of them do so.
double attention_scratch(const EncoderConfig& c, const TapeLoad& load) {
  if (load.mode == TapeMode::kInference) return 0;
  constexpr index kVector = 16;
  const index width = (c.head_dim + kVector - 1) / kVector * kVector;
  const index T = std::min(c.block, load.tokens);
  return kFloat * static_cast<double>(c.heads / c.kv_heads) * static_cast<double>(T) *
         static_cast<double>(1 + 4 * width);
}

// The rows of q and k that a call makes for scores that are no plain dot products, in training with
// their gradients. A cache holds up to `block` keys, whose rows are made at each step.
double made_row_bytes(const EncoderConfig& c, const TapeLoad& load) {
  const bool makes = c.position == PositionKind::kRotary ||
                     c.score == AttentionScoreKind::kCosine ||
                     c.score == AttentionScoreKind::kConcat;
  if (!makes) return 0;
  const bool infers = load.mode == TapeMode::kInference;
  const index width = c.head_dim + (c.score == AttentionScoreKind::kConcat ? 1 : 0);
  const index keys = infers ? std::max(load.tokens, c.block) : load.tokens;
  const auto rows = static_cast<double>(load.tokens * c.heads + keys * c.kv_heads);
  const double value = attention_rounds(c, load) ? sizeof(BFloat16) : kFloat;
  return value * (infers ? 1 : 2) * rows * static_cast<double>(width);
}

// In training, the rows that a call rounds to bfloat16, unless the tape keeps them so: q, k, v and
// o, and their gradients. Without an output projection o is kept whole, and rounded in each call.
double rounded_bytes(const EncoderConfig& c, const SizedLayer& layer, const TapeLoad& load) {
  if (!attention_rounds(c, load)) return 0;
  const bool keeps = attention_keeps_rounded(c, layer, load);
  if (keeps && !layer.spec.no_output) return 0;
  const index heads = keeps ? c.heads : 2 * (c.heads + c.kv_heads);
  const double columns = static_cast<double>(heads * c.head_dim);
  return 2 * sizeof(BFloat16) * static_cast<double>(load.tokens) * columns;
}

// The numbers of each head and query that are observed. Without a norm, o is computed once more.
double observed_bytes(const EncoderConfig& c, const TapeLoad& load) {
  if (!load.observes) return 0;
  constexpr index kNumbers = 3;
  const bool again = c.attention_norm == AttentionNormKind::kNone;
  return kFloat * static_cast<double>(load.tokens) *
         static_cast<double>(c.heads * (kNumbers + (again ? c.head_dim : 0)));
}

// Where nothing is recorded, gates and cells are of the call alone. Backward lists the states
// before each row, whose product with the gradients of the gates is dW_hh; an SRU has none.
double recurrent_scratch(const SizedLayer& layer, const TapeLoad& load) {
  const bool infers = load.mode == TapeMode::kInference;
  const bool is_sru = layer.spec.cell == RecurrentKind::kSru;
  const double states = is_sru ? 0 : odd_lines(static_cast<double>(layer.spec.width));
  return kFloat * static_cast<double>(load.tokens) * (infers ? gate_columns(layer) : states);
}

// The rows between zeros: of x where nothing is recorded, of dy in backward, which also turns the
// taps, and packs them. By pairs it is four planes of half of dy and of the gradients of the taps.
double convolution_scratch(const EncoderConfig& c, const SizedLayer& layer, const TapeLoad& load) {
  const double tokens = static_cast<double>(load.tokens),
               spread = tokens * (1 + gap_rows(c, layer.spec, load)),
               in = static_cast<double>(layer.in), made = static_cast<double>(columns_made(layer)),
               width = static_cast<double>(layer.spec.kernel);
  if (is_computed_by_pairs(layer, load)) return kFloat * (2 * tokens * made + 4 * made * in);
  if (layer.spec.kernel == 1) return 0;
  if (load.mode == TapeMode::kInference) return kFloat * spread * in;
  return kFloat * (spread * made + 2 * width * made * in);
}

// Of a call of the layer. What it has beside its attention, it has not at the same time.
double call_scratch(const EncoderConfig& c, const SizedLayer& layer, const TapeLoad& load) {
  using enum EncoderLayerKind;
  switch (layer.spec.kind) {
    case kRecurrent:
      return recurrent_scratch(layer, load);
    case kConvolution:
      return convolution_scratch(c, layer, load);
    case kFeedForward:
      return 0;
    case kAttentionRnn:
    case kAttention:
    case kTransformer:
      break;
  }
  const EncoderConfig own = config_of_layer(c, layer);
  const double attention =
      made_row_bytes(own, load) + rounded_bytes(own, layer, load) + observed_bytes(own, load);
  if (layer.spec.kind != kAttentionRnn) return attention;
  return std::max(attention, recurrent_scratch(layer, load));
}

}  // namespace

EncoderScratch encoder_scratch(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                               const TapeLoad& load) {
  EncoderScratch scratch;
  for_each_layer(stages, [&](const SizedLayer& layer, index) {
    scratch.of_call = std::max(scratch.of_call, call_scratch(c, layer, load));
    if (layer.spec.heads == 0) return;
    const double attention = attention_scratch(config_of_layer(c, layer), load);
    scratch.of_thread = std::max(scratch.of_thread, attention);
  });
  return scratch;
}

}  // namespace fovea
