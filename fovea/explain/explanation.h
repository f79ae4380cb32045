// SPDX-License-Identifier: Apache-2.0
// The explanation of a model's answer for one text, as numbers, for whoever shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/model/bert.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/translator.h"
#include "fovea/report/html.h"
#include "fovea/report/weight_code.h"

namespace fovea {

/// The place of an attention layer: which text attends to which.
enum class AttentionPlace : std::uint8_t {
  kText,     ///< the text at itself; of a translator the source
  kDecoder,  ///< the translation at what is written of it
  kCross,    ///< the translation at the source
};

struct AttentionLayerName {
  std::string name;  ///< "layer 1 (transformer)"; the number counts attentions, from 1
  index heads = 0;
  bool residual = false;      ///< its result is added to its input
  bool side_by_side = false;  ///< other layers read the same rows
  bool across = false;        ///< over the joints of each time step
  AttentionPlace place = AttentionPlace::kText;
};

/// The attentions of an encoder, in the order in which HeadStatistics come.
std::vector<AttentionLayerName> attention_layers(const std::vector<SizedStage>& stages);
/// Those of the layers of a base.
std::vector<AttentionLayerName> attention_layers(const BertConfig& config);
/// Those of a classifier or a tagger: of its base, if it has one.
template <class Config>
std::vector<AttentionLayerName> encoder_attention_layers(const Config& config) {
  return config.has_base() ? attention_layers(pretrained_layers(config))
                           : attention_layers(sized_stages(config));
}
/// "encoder 1 (transformer)", then of each layer of the decoder "decoder 1 (self-attention)" and
/// "decoder 1 (cross-attention)"; of a recurrent one "decoder (additive attention)" alone.
/// `config` must be resolved.
std::vector<AttentionLayerName> attention_layers(const TranslatorConfig& config);

/// Layers without attention that mix tokens: recurrent layers and convolutions.
bool has_other_mixing(const std::vector<SizedStage>& stages);

/// How much each token counts.
enum class SaliencyMethod : std::uint8_t {
  kGradientInput,  ///< the gradient of what is explained, times the token's embedding
  kGradient,       ///< the length of that gradient alone
  kRollout,        ///< attention and residual sums followed from the result to the tokens
  kNone,
};

inline constexpr EnumName<SaliencyMethod> kSaliencyMethodNames[] = {
    {SaliencyMethod::kGradientInput, "gradient-input"},
    {SaliencyMethod::kGradient, "gradient"},
    {SaliencyMethod::kRollout, "rollout"},
    {SaliencyMethod::kNone, "none"}};
inline std::span<const EnumName<SaliencyMethod>> enum_names(SaliencyMethod) {
  return kSaliencyMethodNames;
}

/// Where a method comes from.
std::string_view source_of(SaliencyMethod method);

/// The options of an explanation.
struct ExplainOptions {
  SaliencyMethod saliency = SaliencyMethod::kGradientInput;
  std::string target = {};
  index token = 0;
  std::string column = {};
  bool truncate = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("saliency", saliency,
          "how much each token counts: gradient x input (Simonyan et al. 2013; Shrikumar et al. "
          "2016), the length of the gradient, attention rollout (Abnar & Zuidema 2020), or none");
    visit(
        "target", target,
        "explain this label or tag or, of a language model, this next token; translators: explain "
        "this translation; empty: the most probable");
    visit("token", token,
          "taggers: explain the tag of this token, from 1; 0: of the first that is not O; "
          "translators: explain this token of the translation, from 1; 0: all of it");
    visit("column", column,
          "taggers of several tag columns: explain the tag in this one; empty: the first");
    visit("truncate", truncate,
          "language models: of a text longer than the model's block, keep the last tokens");
  }
};

/// The heads of one attention. With joints it has several sequences: the time steps of each joint
/// or, `across`, the joints of each time step.
struct ExplainedLayer {
  std::string name;  ///< "layer 1 (transformer)"
  index heads = 0;
  index queries = 0, keys = 0;  ///< of a sequence
  /// [sequences, heads, queries, keys] before dropout; exactly 0 where masked
  std::vector<float> weights = {};
  /// [heads] mean over the queries, in nats; none if the weights of a query do not sum to 1
  std::vector<double> entropy = {};
  /// [heads] mean of |query - key| over the weights; as above, and none where these are of two
  /// texts or are joints, which have no order
  std::vector<double> distance = {};
  std::vector<float> largest = {};  ///< [heads] the weight of strongest_cell(), of all sequences
  index sequences = 1;
  bool across = false;
  AttentionPlace place = AttentionPlace::kText;

  /// Head `number`, from 1, in a sequence from 0.
  HeadWeights head(index number, index sequence = 0) const {
    const auto size = static_cast<std::size_t>(queries * keys);
    const auto before = static_cast<std::size_t>(sequence * heads + number - 1) * size;
    return {std::span(weights).subspan(before, size), queries, keys};
  }
};

/// The weight farthest from 0 of a head: where it is.
struct StrongestWeight {
  index sequence = 0, query = 0, key = 0;
};
StrongestWeight strongest_weight(const ExplainedLayer& layer, index head);

/// The sample that is explained for a model of numbers, which read its time steps from `first_step`
/// on. All three count from 0, as the arrays do.
struct ExplainedSample {
  index sample = 0;
  index first_step = 0;
  index joints = 0;  ///< 0: a time step is one row
};

/// A phrase in the languages of pages.
struct Words {
  std::string english, chinese;
};

/// A phrase with places, {0}, {1}, for texts of the model or the user, which are shown in quotes.
struct QuotingWords {
  std::string english, chinese;
  std::vector<std::string> quoted = {};
};
/// Whether a text in quotes is cut to kLongestToken columns.
enum class QuoteLength : std::uint8_t { kShort, kWhole };
Words filled(const QuotingWords& words, QuoteLength length);

struct ExplainedLabel {
  std::string label;
  double probability = 0;
};

/// The answer of a tagger in one tag column.
struct ExplainedTags {
  std::string column = {};                 ///< of one among several
  std::vector<std::string> tags = {};      ///< [T]; "" of a token that begins no word
  std::vector<double> probabilities = {};  ///< [T] of these
};

/// Contributions that add up: their sum and the bias are the value that is explained.
struct ExactSum {
  double value = 0, bias = 0;
};

/// The saliency of each token.
struct Saliency {
  SaliencyMethod method = SaliencyMethod::kNone;
  QuotingWords of = {};            ///< the quantity that is explained: "the logit of {0}"
  std::vector<float> values = {};  ///< [T], with joints [T, joints]; empty: none
  /// With gradient x input, for a model whose logits are linear in its embeddings.
  std::optional<ExactSum> exact = {};
};

/// The note that says that the contributions are exact, with their sum; `exact` must be there.
Words exact_sum_note(const Saliency& saliency);

/// The answer of a translator.
struct ExplainedTranslation {
  std::string text = {};
  bool is_given = false;                   ///< by the user, and not found by a search
  std::vector<std::string> tokens = {};    ///< [N] with the end, written as those of the text
  std::vector<double> probabilities = {};  ///< [N] of each, given those before it
  double log_probability = 0;              ///< of all of them, in nats
};

struct Explanation {
  Phrase kind;                 ///< of the model: {"tagger", "标注器"}
  bool predicts_next = false;  ///< a language model, whose `prediction` is of the next token
  /// [T] the bytes of each; "<s>" and the like for special ones; of numbers the number of each time
  /// step; of a translator the source, with its end
  std::vector<std::string> tokens;
  index cut = 0;  ///< tokens of the text that the model did not read
  std::vector<ExplainedLayer> layers = {};
  std::optional<index> main_layer = {};  ///< that is shown first, from 1; none: the last
  /// [T], with joints [T, joints]: the weights of attention as pooling or, of a TextCNN, the share
  /// of its filters whose maximum lies there; empty: another pooling
  std::vector<float> pooling = {};
  bool pools_maxima = false;  ///< that of a TextCNN
  /// The most probable labels or next tokens first; none for regression.
  std::vector<ExplainedLabel> prediction = {};
  std::string number = {};               ///< the answer of a regression
  std::vector<ExplainedTags> tags = {};  ///< the answer of a tagger
  std::optional<ExplainedTranslation> translation = {};
  /// With saliency: the token whose tag or which of the translation is explained, from 1; 0: all
  index token = 0;
  Saliency saliency = {};
  std::vector<Words> notes = {};                ///< remarks on the text and the saliency
  std::optional<ExplainedSample> numbers = {};  ///< of a model of numbers alone

  index joints() const { return numbers ? numbers->joints : 0; }
  bool has_weights() const { return !layers.empty() || !pooling.empty(); }
  /// The number of the layer that is shown where this one, from 1 (0: none), is asked for; both
  /// count from 1. There must be a layer.
  index shown_layer(index asked) const {
    return asked > 0 ? asked : main_layer.value_or(static_cast<index>(layers.size()));
  }
};

/// The tokens of one side of a layer of a text, and the number of the first.
struct LayerTokens {
  std::vector<std::string> tokens;
  index first = 1;
};
/// A query of the decoder is the step that writes a token, so it is called by that.
LayerTokens queries_of(const Explanation& explanation, const ExplainedLayer& layer);
/// In the decoder, the keys are the tokens that were written before, behind "<s>", which has the
/// number 0.
LayerTokens keys_of(const Explanation& explanation, const ExplainedLayer& layer);

/// The warning that stands beside attention weights wherever they are shown.
inline constexpr std::string_view kWeightsAreNoExplanation =
    "Attention weights are no explanation by themselves: they say where a head looked, not what "
    "decided.";

}  // namespace fovea
