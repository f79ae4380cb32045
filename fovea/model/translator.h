// SPDX-License-Identifier: Apache-2.0
// A translator: from the tokens of a source and those of a target so far it computes the
// distribution of the target's next token (Vaswani et al. 2017, section 3.1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/model/target_decoder.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/model/translator_config.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"

namespace fovea {

/// An encoder, a decoder, and the projection to the logits of the next token. `config` must be
/// resolved. Parameters, in this order: encoder.* of TextEncoder, with the layers of a Transformer
/// called encoder.blocks.N.*, others encoder.layers.N.*; decoder.* of TextDecoder or
/// RecurrentDecoder, without a table of its own where embeddings are shared; output.weight [target
/// vocabulary, C] (unless tied) and output.bias (untied models with biases).
class TranslatorLayers {
 public:
  TranslatorLayers(const TranslatorConfig& config, const ParameterScope& scope);

  const TextEncoder& encoder() const { return encoder_; }
  const TargetDecoder& decoder() const { return *decoder_; }
  Parameter& output_weight() const { return output_ ? output_->weight() : decoder_->tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : nullptr; }

 private:
  TextEncoder encoder_;
  std::unique_ptr<const TargetDecoder> decoder_;
  std::optional<Linear> output_;
};

class Decoding;
class TranslatorLayers;

/// Pairs of sentences, packed. Sentence n of the source and of the target belong together.
struct TranslationBatch {
  TextRows source = {};
  TextRows target = {};  ///< input of the decoder: the begin mark, then the tokens so far
  Vec<const std::int32_t> targets = {};  ///< the token after each of these; -1: no loss there
};

struct TranslatorLossOptions {
  double scale = 1;      ///< 1 / (targets of the update) makes the loss a mean
  double smoothing = 0;  ///< of labels (kernel/cross_entropy.h)
  DropoutKey dropout{};  ///< seed and step of this update's masks; `layer` is not read
  /// If not empty: [attentions()], to which the forward adds what each attention looks like: those
  /// of the encoder; then of each layer of the decoder that to the target, and that to the source
  /// (a recurrent decoder has that alone).
  std::span<HeadStatistics> attention{};
  /// If given: becomes the rows of the tokens of the source before positions join them, as an input
  /// of the tape, for its gradient.
  Variable* inputs = nullptr;
};

/// Only the optimizer and checkpoints change the parameters. All functions are const; several
/// threads may call them at once, each with its own tape, as long as no thread trains. No bit of a
/// pair's result depends on the others.
class Translator {
 public:
  /// Throws as resolve() does, and kOutOfMemory.
  Translator(const TranslatorConfig& config, std::uint64_t seed, DType dtype = DType::kFloat32);
  Translator(const TranslatorConfig& config, const ParameterSetOptions& options);
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;
  ~Translator();

  /// The resolved configuration: no size is 0.
  const TranslatorConfig& config() const { return config_; }
  /// In a fixed order, with names such as "decoder.blocks.0.cross.q.weight".
  std::span<Parameter* const> parameters() const { return parameters_->parameters(); }
  index attentions() const;
  /// Which of these is the attention of a layer of the decoder to the source.
  index cross_attention(index layer) const;

  /// scale x the sum of the negative log-likelihoods of all targets, smoothed, in nats: [1, 1].
  /// Throws kShape for a side of more than `block` tokens, or of different numbers of sentences. As
  /// with LanguageModel::loss, start backward from this value, without another factor.
  Variable loss(Tape& tape, const TranslationBatch& batch,
                const TranslatorLossOptions& options = {}) const;

  /// The logits [N, target vocabulary] of the token that follows each token of the target;
  /// `batch.targets` is not read.
  Variable logits(Tape& tape, const TranslationBatch& batch,
                  const TranslatorLossOptions& options = {}) const;

 private:
  friend class TranslatorDecoder;

  Variable rows(Tape& tape, const TranslationBatch& batch,
                const TranslatorLossOptions& options) const;

  TranslatorConfig config_;
  std::unique_ptr<ParameterSet> parameters_;
  std::unique_ptr<const TranslatorLayers> layers_;
};

/// Writes translations of many sentences at once, a token more of each hypothesis in every step.
/// Belongs to one thread.
class TranslatorDecoder {
 public:
  /// The model must outlive the decoder and not change between two calls of begin().
  TranslatorDecoder(const Context& context, const Translator& model);
  ~TranslatorDecoder();
  TranslatorDecoder(const TranslatorDecoder&) = delete;
  TranslatorDecoder& operator=(const TranslatorDecoder&) = delete;

  /// Reads these sentences, each with its end. There is a hypothesis for each, in which nothing is
  /// written: no begin mark either.
  void begin(const TextRows& sources);

  /// Hypothesis i becomes what parents[i] was, with ids[i] behind it: [N] each, of at most `block`
  /// tokens. Returns the logits [N, target vocabulary] of what follows, valid until the next call.
  /// No bit of a row depends on the other hypotheses, or on the number of threads.
  Rows<const float> step(std::span<const index> parents, Vec<const std::int32_t> ids);

 private:
  const Translator& model_;
  Tape tape_;
  std::unique_ptr<Decoding> decoding_;
};

}  // namespace fovea
