// SPDX-License-Identifier: Apache-2.0
// A translator: from the tokens of a source and those of a target so far it computes the
// distribution of the target's next token (Vaswani et al. 2017, section 3.1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/grad/ops.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/target_decoder.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"

namespace fovea {

/// The kind of model that reads the source and writes the target.
enum class TranslatorKind : std::uint8_t {
  kTransformer,
  kBahdanauGru,  ///< a GRU that attends to a bidirectional one (Bahdanau et al. 2015, appendix A)
};
inline constexpr EnumName<TranslatorKind> kTranslatorKindNames[] = {
    {TranslatorKind::kTransformer, "transformer"}, {TranslatorKind::kBahdanauGru, "bahdanau-gru"}};
inline std::span<const EnumName<TranslatorKind>> enum_names(TranslatorKind) {
  return kTranslatorKindNames;
}

/// A Transformer of an encoder, which reads the source, and a decoder, which predicts the next
/// token of the target from those before it and from the encoder's output (Vaswani et al. 2017,
/// section 3.1). `vocabulary` is that of the source; `position` is the encoder's. Sizes given as 0
/// follow from the others; resolve() fills them in.
struct TranslatorConfig : EncoderConfig {
  TranslatorConfig() {
    sight = Sight::kWhole;
    position = PositionKind::kSinusoidal;
    activation = LayerActivation::kRelu;
    bias = true;
    width = 256;
    block = 512;
    dropout = 0.1;
  }

  TranslatorKind kind = TranslatorKind::kTransformer;
  index encoder_layers = 3;
  index decoder_layers = 3;
  std::string decoder_position = {};
  bool share_embeddings = false;
  bool tie = true;
  index target_vocabulary = 0;
  // No fields: of models from elsewhere.
  bool logits_bias = false;  ///< the logits of a tied model have a bias
  double output_scale = 1;   ///< of the rows that become logits

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("model", kind,
          "a Transformer, or a GRU with additive attention to what another, in both directions, "
          "reads",
          {.place = HelpPlace::kModel});
    visit("encoder_layers", encoder_layers, "layers of the Transformer that reads the source",
          {.place = HelpPlace::kModel});
    visit("decoder_layers", decoder_layers, "layers of the Transformer that writes the target",
          {.place = HelpPlace::kModel});
    visit(
        "encoder", encoder,
        "layers that read the source instead of --encoder-layers, such as conv3,bilstm,attention; "
        "none: those, or with --model bahdanau-gru bigru",
        {.place = HelpPlace::kModel, .shown = "LAYERS"});
    visit_init(visit);
    visit_sizes(visit);
    visit("block", block, "most tokens of a sentence, on either side, with its end",
          {.range = ValueRange::in(2, kLargestSize)});
    visit("dropout", dropout, "probability of dropping a weight or activation in training",
          {.range = ValueRange::share()});
    visit_positions(under("Positions", visit));
    visit("decoder_position", decoder_position,
          "position encoding of the decoder; none given: that of --position",
          {.heading = "Positions", .names = [] { return names_of<PositionKind>("|"); }});
    visit_attention(under("Attention", visit));
    visit_layers(under("Layers", visit));
    visit("share_embeddings", share_embeddings,
          "one table of tokens for source and target: needs --shared-vocabulary");
    visit("tie", tie, "use the token embeddings of the target as output projection too");
    visit("vocabulary", vocabulary, "number of tokens of the source", {.is_option = false});
    visit("target_vocabulary", target_vocabulary, "number of tokens of the target",
          {.is_option = false});
  }

  friend bool operator==(const TranslatorConfig&, const TranslatorConfig&) = default;
};

/// The configuration with every size filled in. Throws kShape or kOptionValue that names the
/// option, its value and the rule.
TranslatorConfig resolve(TranslatorConfig config);

/// The configurations of encoder and decoder of a resolved configuration, each with its own
/// vocabulary, position and sight.
EncoderConfig encoder_of(const TranslatorConfig& config);
EncoderConfig decoder_of(const TranslatorConfig& config);

/// The stages of encoder and decoder of a resolved configuration; those of the decoder (of a
/// recurrent one a GRU) without its attention to the source. Throw kOptionValue or kShape.
std::vector<SizedStage> encoder_stages(const TranslatorConfig& config);
std::vector<SizedStage> decoder_stages(const TranslatorConfig& config);

/// The number of learned values. Allocates nothing.
index parameter_count(const TranslatorConfig& config);

/// An encoder, a decoder, and the projection to the logits of the next token. `config` must be
/// resolved. Parameters, in this order: encoder.* of TextEncoder, with the layers of a Transformer
/// called encoder.blocks.N.*, others encoder.layers.N.*; decoder.* of TextDecoder or
/// RecurrentDecoder, without a table of its own where embeddings are shared; output.weight [target
/// vocabulary, C] (unless tied) and output.bias (untied models with biases, and with logits_bias).
class TranslatorLayers {
 public:
  TranslatorLayers(const TranslatorConfig& config, const ParameterScope& scope);

  const TextEncoder& encoder() const { return encoder_; }
  index attentions() const { return encoder_.attentions() + decoder_->attentions(); }
  const TargetDecoder& decoder() const { return *decoder_; }
  Parameter& output_weight() const { return output_ ? output_->weight() : decoder_->tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : logits_bias_; }

 private:
  TextEncoder encoder_;
  std::unique_ptr<const TargetDecoder> decoder_;
  std::optional<Linear> output_;
  Parameter* logits_bias_ = nullptr;  // of a tied model
};

class Decoding;
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

/// No bit of a pair's result depends on the others.
class Translator : public ModelOf<TranslatorConfig, TranslatorLayers> {
 public:
  using ModelOf::ModelOf;

  /// Which of attentions() is the attention of a layer of the decoder to the source.
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

  // The rows from which the next tokens of the target are predicted.
  Variable rows(Tape& tape, const TranslationBatch& batch,
                const TranslatorLossOptions& options) const;
  // What the decoder makes of a target, as its logits read it.
  Variable scaled(Tape& tape, Variable decoded) const;
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

/// The load of a translator.
struct TranslationLoad {
  TapeLoad source = {}, target = {};  ///< of the same mode

  index listed() const { return source.tokens + target.tokens; }
  TranslationLoad part(double share) const { return {source.part(share), target.part(share)}; }
};
PassCost plan_pass(const Context& context, const TranslatorConfig& config,
                   const TranslationLoad& load);

}  // namespace fovea
