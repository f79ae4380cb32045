// SPDX-License-Identifier: Apache-2.0
// The configuration of a translator, its parameter count and its FLOPs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"

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

}  // namespace fovea
