// SPDX-License-Identifier: Apache-2.0
// The configuration of a language model, the layers that it asks for, its parameter count, and the
// known defects of published models, which --compat names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/nn/attention_rnn.h"

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

}  // namespace fovea
