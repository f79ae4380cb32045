// SPDX-License-Identifier: Apache-2.0
// A language model: from tokens it computes the distribution of the next token. It is a
// decoder-only Transformer (Vaswani et al. 2017; Radford et al. 2019), or an encoder of other
// layers that see no later token. The call goes down to the operator through nn/block, nn/attention
// and grad/ops/attention to attention/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/packed_rows.h"
#include "fovea/grad/tape.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/nn/attention_rnn.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/low_rank.h"
#include "fovea/nn/module.h"

namespace fovea {

/// The kind of encoder that reads the tokens.
enum class LanguageModelKind : std::uint8_t {
  kTransformer,
  kAttentionRnn,  ///< a tanh RNN with attention over its states (Hands-on NLP, chapter 6)
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

/// A model that predicts the next token. Sizes given as 0 follow from the others; resolve() fills
/// them in.
struct LanguageModelConfig : EncoderConfig {
  LanguageModelKind kind = LanguageModelKind::kTransformer;
  std::string compat = {};
  index layers = 4;
  std::string window = {};
  bool tie = true;
  double logit_softcap = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("model", kind, "kind of the model; encoder: the layers of --encoder",
          {.place = HelpPlace::kModel});
    visit("encoder", encoder, "--model encoder: its layers, such as conv3,attention:window=8,lstm",
          {.place = HelpPlace::kModel, .shown = "LAYERS"});
    visit("compat", compat,
          "defects of the published code to repeat: all, or sum-weights, history-only, "
          "state-is-attention, ln-unbiased",
          {.shown = "[=DEFECT,...]", .bare = "all"});
    visit_init(visit);
    visit("layers", layers, "layers of a Transformer, RNN, GRU, LSTM or SRU",
          {.place = HelpPlace::kModel});
    visit_sizes(visit);
    visit("block", block, "context length: most tokens that the model sees at once",
          {.range = ValueRange::in(1, kLargestSize), .place = HelpPlace::kModel});
    visit("dropout", dropout, "probability of dropping a weight or activation in training",
          {.range = ValueRange::share()});
    visit_positions(under("Positions", visit));
    visit("window", window,
          "how many tokens before its own a query sees, one number or one a layer; 0: all",
          {.heading = "Attention", .shown = "N[,N...]"});
    visit_attention(under("Attention", visit));
    visit_layers(under("Layers", visit));
    visit("tie", tie, "use the token embeddings as output projection too");
    visit("logit_softcap", logit_softcap, "a logit l becomes C tanh(l / C), C this cap; 0: no cap",
          {.range = ValueRange::from(0, "no cap")});
    visit("experts", experts, "of a model from elsewhere: feed-forward networks of a layer",
          {.range = ValueRange::in(0, kLargestSize), .is_option = false});
    visit("experts_per_token", experts_per_token, "the same: how many of them a token takes",
          {.range = ValueRange::in(0, kLargestSize), .is_option = false});
    visit("vocabulary", vocabulary, "number of tokens", {.is_option = false});
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

/// The defects that --compat asks for.
struct Compat {
  AttentionRnnDefects attention_rnn{};
  bool ln_unbiased = false;  ///< layer norm by std + eps, as The Annotated Transformer has it
};

/// Throws kOptionValue for a name that is not known, or that this model does not have.
Compat compat_of(const LanguageModelConfig& config);

/// The stages of a resolved configuration. Throws kOptionValue or kShape.
std::vector<SizedStage> sized_stages(const LanguageModelConfig& config);

/// The configuration of the encoder of a resolved configuration, with the defects of --compat.
EncoderConfig encoder_of(const LanguageModelConfig& config);

/// A text encoder, and the projection to the logits of the next token. `config` must be resolved.
/// Parameters, in this order: those of TextEncoder, with the layers of a Transformer called
/// blocks.N.*; output.weight [V, C] (unless tied) and output.bias [V] (untied models with biases).
class LanguageModelLayers {
 public:
  LanguageModelLayers(const LanguageModelConfig& config, const ParameterScope& scope);

  /// Its last rows [N, C] are those from which the next tokens are predicted.
  const TextEncoder& encoder() const { return encoder_; }
  index attentions() const { return encoder_.attentions(); }
  Parameter& output_weight() const { return output_ ? output_->weight() : encoder_.tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : nullptr; }

 private:
  TextEncoder encoder_;
  std::optional<Linear> output_;
};

/// N tokens of several sequences, one sequence after another, without padding. The members are
/// views.
struct TokenBatch {
  Vec<const std::int32_t> ids = {};      ///< [N]
  Vec<const std::int32_t> targets = {};  ///< [N]; -1: no loss at this place
  Vec<const std::int32_t> offsets = {};  ///< [sequences + 1], from 0 to N
  /// [sequences] numbers that name the dropout masks; may be empty
  Vec<const std::uint64_t> samples = {};

  TextRows sequences() const { return {ids, offsets, samples}; }
};

struct LossOptions {
  double scale = 1;      ///< 1 / (targets of the update) makes the loss a mean
  DropoutKey dropout{};  ///< seed and step of this update's masks; `layer` is not read
  /// If not empty: [attentions()], to which the forward adds what each attention looks like.
  std::span<HeadStatistics> attention{};
  /// If given: becomes the rows of the tokens before positions join them, as an input of the tape,
  /// for its gradient.
  Variable* inputs = nullptr;
};

/// Several threads may read it at once, each also with its own decoder.
class LanguageModel : public ModelOf<LanguageModelConfig, LanguageModelLayers> {
 public:
  using ModelOf::ModelOf;

  /// scale x the sum of the negative log-likelihoods of all targets, in nats: [1, 1]. A sequence
  /// may have at most `block` tokens. On a training tape this call computes the gradients of the
  /// output projection already, times `scale`. So start backward from this value, or from a sum of
  /// such values, without another factor.
  Variable loss(Tape& tape, const TokenBatch& batch, const LossOptions& options = {}) const;

  /// The rows [N, C] from which the tokens that follow are predicted.
  Variable rows(Tape& tape, const TokenBatch& batch, const LossOptions& options = {}) const;
  /// The loss() of these rows, but each sequence has a factor of its own: [1, 1].
  Variable loss_of_rows(Tape& tape, Variable rows, const TokenBatch& batch,
                        Vec<const double> factors) const;
  /// The loss() of each sequence, for an inference tape.
  std::vector<double> losses_of_rows(Tape& tape, Variable rows, const TokenBatch& batch) const;

  /// The logits [N, V] for the token that follows each token; `batch.targets` is not read.
  Variable logits(Tape& tape, const TokenBatch& batch, const LossOptions& options = {}) const;

 private:
  friend class LanguageModelDecoder;

  Variable project(Tape& tape, Variable x) const;
  // Undefined without a target.
  Variable loss_of_sequence(Tape& tape, Variable rows, const TokenBatch& batch, index sequence,
                            double factor) const;
};

/// Generation: takes tokens and returns the logits of the next one. The layers keep what they need
/// of earlier tokens, so each new token needs one row of work.
///
/// Recurrent layers and convolutions carry a state of a fixed size: a model of these alone goes on
/// without end (the attention of an attention RNN then sees its last `block` states).
///
/// Any other model sees at most `block` tokens, with positions counted from the first of them. When
/// the window is full, it moves forward by a quarter of a block, and the tokens that stay are
/// encoded again, from position 0. (Dropping only the oldest keys and values would keep others that
/// depend on dropped tokens and on old positions; training has no such keys and values.) The logits
/// after n tokens are those of tokens [window_start(n), n) alone: the same bits as without a cache.
/// (With attention_norm none they agree to rounding: linear attention chooses the order of its sums
/// by the number of queries.)
class LanguageModelDecoder {
 public:
  /// The model must outlive the decoder and not change while tokens are held.
  LanguageModelDecoder(const Context& context, const LanguageModel& model);

  /// Takes the next tokens (at least one) and returns the logits [V] after the last of them, valid
  /// until the next call. If it throws, the decoder has the tokens that it had before.
  Vec<const float> append(Vec<const std::int32_t> ids);

  /// Removes all tokens.
  void clear();
  /// Tokens taken so far.
  index size() const { return static_cast<index>(tokens_.size()); }

  /// The first of n tokens that the model still sees.
  static index window_start(index n, index block);

 private:
  void begin_at(index start);
  Vec<const float> encode_rest();
  Vec<const float> encode(Vec<const std::int32_t> ids);

  const LanguageModel& model_;
  Tape tape_;
  std::vector<std::int32_t> tokens_;
  EncoderSession session_;
  bool endless_;       // whether the window never moves
  index start_ = 0;    // the token at position 0 of the session
  index encoded_ = 0;  // tokens that the session has
};

PassCost plan_pass(const Context& context, const LanguageModelConfig& config, const TapeLoad& load,
                   const ModelChange<LanguageModel>& change = {});

}  // namespace fovea
