// SPDX-License-Identifier: Apache-2.0
// The configuration of a language model, its parameter count and its FLOPs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/nn/options.h"
#include "fovea/parts/variant.h"

namespace fovea {

/// What reads the tokens.
enum class LanguageModelKind : std::uint8_t {
  kTransformer,
  kAttentionRnn,  ///< a tanh RNN with attention over its states (spec L13, L14)
  kRnn,
  kGru,
  kLstm,
  kSru,
  kEncoder,  ///< whatever `encoder` says
};

inline constexpr EnumName<LanguageModelKind> kLanguageModelKindNames[] = {
    {LanguageModelKind::kTransformer, "transformer"},
    {LanguageModelKind::kAttentionRnn, "attention-rnn"},
    {LanguageModelKind::kRnn, "rnn"},
    {LanguageModelKind::kGru, "gru"},
    {LanguageModelKind::kLstm, "lstm"},
    {LanguageModelKind::kSru, "sru"},
    {LanguageModelKind::kEncoder, "encoder"}};
inline std::span<const EnumName<LanguageModelKind>> enum_names(LanguageModelKind) {
  return kLanguageModelKindNames;
}

/// How parameters start.
enum class InitScheme : std::uint8_t {
  kGpt2,    ///< matrices and tables normal(0, 0.02); recurrent layers as in PyTorch
  kSource,  ///< as in the book: tables normal(0, 1); RNN, GRU, LSTM, their attention and the
            ///< output above them normal(0, 0.01), biases there 0; else PyTorch's
};

inline constexpr EnumName<InitScheme> kInitSchemeNames[] = {{InitScheme::kGpt2, "gpt2"},
                                                            {InitScheme::kSource, "source"}};
inline std::span<const EnumName<InitScheme>> enum_names(InitScheme) { return kInitSchemeNames; }

/// A model that predicts the next token. Sizes given as 0 follow from the others; resolve() fills
/// them in. Attention layers of any kind of model take what is said about attention.
struct LanguageModelConfig {
  LanguageModelKind kind = LanguageModelKind::kTransformer;
  std::string encoder = {};
  std::string compat = {};
  InitScheme init = InitScheme::kGpt2;
  index layers = 4;
  index heads = 4;
  index kv_heads = 0;
  index head_dim = 0;
  index width = 128;
  index ff = 0;
  index block = 64;
  double dropout = 0;
  PositionKind position = PositionKind::kLearned;
  index position_max = 0;
  PositionJoin position_join = PositionJoin::kAdd;
  SinusoidOrder sinusoid = SinusoidOrder::kInterleaved;
  double embedding_scale = 0;
  index t5_buckets = 32;
  index t5_max_distance = 128;
  index shaw_clip = 16;
  double rope_base = 10000;
  std::string window = {};
  bool qk_norm = false;
  AttentionScoreKind score = AttentionScoreKind::kDot;
  AttentionNormKind attention_norm = AttentionNormKind::kSoftmax;
  bool log_n_scale = false;
  double softcap = 0;
  bool sink = false;
  NormKind norm = NormKind::kLayer;
  NormPosition norm_position = NormPosition::kPre;
  LayerNormVariant ln_variant = LayerNormVariant::kStandard;
  bool bias = false;
  Activation activation = Activation::kGelu;
  bool tie = true;
  index vocabulary = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("model", kind, "what reads the tokens");
    visit("encoder", encoder, "model encoder: its layers, such as conv3,attention:window=8,lstm");
    visit("compat", compat,
          "defects of the published code to repeat: all, or sum-weights, history-only, "
          "state-is-attention, ln-unbiased");
    visit("init", init, "how parameters start: as in GPT-2, or as in the book's code");
    visit("layers", layers, "layers of a Transformer, RNN, GRU, LSTM or SRU");
    visit("heads", heads, "attention heads per layer");
    visit("kv_heads", kv_heads, "heads of keys and values, each shared by a group; 0: heads");
    visit("head_dim", head_dim, "width of a head; 0: width / heads");
    visit("width", width, "width of the model");
    visit("ff", ff, "width of the feed-forward network; 0: 4 width");
    visit("block", block, "context length: most tokens that the model sees at once");
    visit("dropout", dropout, "probability of dropping a weight or activation in training");
    visit("position", position, "position encoding");
    visit("position_max", position_max,
          "position learned or sinusoidal: rows of the table; 0: block");
    visit("position_join", position_join,
          "add the row of the position to the embedding, or concatenate and project both");
    visit("sinusoid", sinusoid, "position sinusoidal: order of sines and cosines");
    visit("embedding_scale", embedding_scale,
          "factor of token embeddings; 0: square root of width with position sinusoidal, "
          "else 1");
    visit("t5_buckets", t5_buckets, "position t5: buckets of distances, a learned bias each");
    visit("t5_max_distance", t5_max_distance, "position t5: distances from here on share a bucket");
    visit("shaw_clip", shaw_clip, "position shaw: distances from here on share a learned vector");
    visit("rope_base", rope_base, "position rotary: base of the angles");
    visit("window", window,
          "keys before the query that it sees, one number or one a layer; 0: all");
    visit("qk_norm", qk_norm,
          "normalise queries and keys of each head (RMS) before their product, with learned gains");
    visit("score", score, "how a query and a key become a score");
    visit("attention_norm", attention_norm, "how scores become weights");
    visit("log_n_scale", log_n_scale,
          "factor log(n) / log(block) of the scores, n the keys that a query sees");
    visit("softcap", softcap, "a score s becomes C tanh(s / C); 0: no cap");
    visit("sink", sink, "a learned sink in every head: weight that goes to no key");
    visit("norm", norm, "LayerNorm or RMSNorm");
    visit("norm_position", norm_position, "normalise before or after each part of a layer");
    visit("ln_variant", ln_variant, "LayerNorm: divide by sqrt(var + eps), or by std + eps");
    visit("bias", bias, "biases in projections and norms");
    visit("activation", activation, "activation of the feed-forward network");
    visit("tie", tie, "use the token embeddings as output projection too");
    visit("vocabulary", vocabulary, "number of tokens");
  }

  friend bool operator==(const LanguageModelConfig&, const LanguageModelConfig&) = default;
};

/// The windows of the layers, 0 for one that sees all keys. Throws kOptionValue.
std::vector<index> layer_windows(const LanguageModelConfig& config);

/// The configuration with every size filled in. Throws kShape or kOptionValue that names the
/// option, its value and the rule; sizes beyond any machine throw kShape.
LanguageModelConfig resolve(LanguageModelConfig config);

/// The number of learned values. Allocates nothing.
index parameter_count(const LanguageModelConfig& config);

/// FLOPs (multiplications and additions) of the matrix products for one token of a training step,
/// forward and backward, in sequences of `block` tokens. Causal attention counts half of its
/// scores.
double flops_per_token(const LanguageModelConfig& config);

}  // namespace fovea
