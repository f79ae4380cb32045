// SPDX-License-Identifier: Apache-2.0
// A language model: from tokens it computes the distribution of the next token. It is a
// decoder-only Transformer (Vaswani et al. 2017; Radford et al. 2019), or an encoder of other
// layers that see no later token. The call goes down to the operator through nn/block, nn/attention
// and grad/ops/attention to attention/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/grad/packed_rows.h"
#include "fovea/grad/tape.h"
#include "fovea/model/language_model_config.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/module.h"

namespace fovea {

/// A text encoder, and the projection to the logits of the next token. `config` must be resolved.
/// Parameters, in this order: those of TextEncoder, with the layers of a Transformer called
/// blocks.N.*; output.weight [V, C] (unless tied) and output.bias [V] (untied models with biases).
class LanguageModelLayers {
 public:
  LanguageModelLayers(const LanguageModelConfig& config, const ParameterScope& scope);

  /// Its last rows [N, C] are those from which the next tokens are predicted.
  const TextEncoder& encoder() const { return encoder_; }
  Parameter& output_weight() const { return output_ ? output_->weight() : encoder_.tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : nullptr; }

 private:
  TextEncoder encoder_;
  std::optional<Linear> output_;
};

class LanguageModelLayers;

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

/// Only the optimizer and checkpoints change the parameters. All functions are const; several
/// threads may call them at once, each with its own tape or decoder, as long as no thread trains.
class LanguageModel {
 public:
  /// Throws as resolve() does, and kOutOfMemory.
  LanguageModel(const LanguageModelConfig& config, std::uint64_t seed,
                DType dtype = DType::kFloat32);
  LanguageModel(const LanguageModelConfig& config, const ParameterSetOptions& options);
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;
  ~LanguageModel();

  /// The resolved configuration: no size is 0.
  const LanguageModelConfig& config() const { return config_; }
  /// In a fixed order, with names such as "blocks.0.attention.qkv.weight".
  std::span<Parameter* const> parameters() const { return parameters_->parameters(); }
  /// How many of its layers have attention.
  index attentions() const;

  /// scale x the sum of the negative log-likelihoods of all targets, in nats: [1, 1]. A sequence
  /// may have at most `block` tokens. On a training tape this call computes the gradients of the
  /// output projection already, times `scale`. So start backward from this value, or from a sum of
  /// such values, without another factor.
  Variable loss(Tape& tape, const TokenBatch& batch, const LossOptions& options = {}) const;

  /// The logits [N, V] for the token that follows each token; `batch.targets` is not read.
  Variable logits(Tape& tape, const TokenBatch& batch, const LossOptions& options = {}) const;

 private:
  friend class LanguageModelDecoder;

  Variable project(Tape& tape, Variable x) const;

  LanguageModelConfig config_;
  std::unique_ptr<ParameterSet> parameters_;
  std::unique_ptr<const LanguageModelLayers> layers_;
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

}  // namespace fovea
