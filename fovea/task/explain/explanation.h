// SPDX-License-Identifier: Apache-2.0
// What a model looked at in one text: numbers, for whoever shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/report/weight_code.h"

namespace fovea {

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

/// What is explained.
struct ExplainOptions {
  SaliencyMethod saliency = SaliencyMethod::kGradientInput;
  std::string target = {};
  bool truncate = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("saliency", saliency,
          "how much each token counts: gradient x input (Simonyan et al. 2013; Shrikumar et al. "
          "2016), the length of the gradient, attention rollout (Abnar & Zuidema 2020), or none");
    visit("target", target,
          "the gradient is that of this label or, of a language model, this next token; empty: the "
          "most probable");
    visit("truncate", truncate,
          "language models: of a text longer than the model's block, keep the last tokens");
  }
};

/// The heads of one attention over n tokens. Of numbers with joints it has several sequences: the n
/// time steps of each joint or, `across`, the n joints of each time step.
struct ExplainedLayer {
  std::string name;  ///< "layer 1 (transformer)"
  index heads = 0;
  /// [sequences, heads, n, n] before dropout; exactly 0 where masked
  std::vector<float> weights = {};
  /// [heads] mean over the queries, in nats; none if the weights of a query do not sum to 1
  std::vector<double> entropy = {};
  /// [heads] mean of |query - key| over the weights; as above, and none across joints, which have
  /// no order
  std::vector<double> distance = {};
  std::vector<float> largest = {};  ///< [heads] the weight of strongest_cell(), of all sequences
  index sequences = 1;
  bool across = false;

  /// Head `number`, from 1, of so many tokens, in a sequence from 0.
  HeadWeights head(index number, index tokens, index sequence = 0) const {
    const auto size = static_cast<std::size_t>(tokens * tokens);
    const auto before = static_cast<std::size_t>(sequence * heads + number - 1) * size;
    return {std::span(weights).subspan(before, size), tokens, tokens};
  }
};

/// The weight farthest from 0 of a head: where it is.
struct StrongestWeight {
  index sequence = 0, query = 0, key = 0;
};
StrongestWeight strongest_weight(const ExplainedLayer& layer, index head, index tokens);

/// What is explained of a model of numbers: a sample, of which the model read the time steps from
/// `first_step` on. All three count from 0, as the arrays do.
struct ExplainedSample {
  index sample = 0;
  index first_step = 0;
  index joints = 0;  ///< 0: a time step is one row
};

/// The same in the languages of pages.
struct Words {
  std::string english, chinese;
};

struct ExplainedLabel {
  std::string label;
  double probability = 0;
};

/// The saliency of each token.
struct Saliency {
  SaliencyMethod method = SaliencyMethod::kNone;
  Words of = {};                   ///< what is explained: "the logit of \"good\""
  std::vector<float> values = {};  ///< [T], with joints [T, joints]; empty: none
};

struct Explanation {
  std::string kind;  ///< "text classifier", "language model", "classifier of numbers"
  /// [T] the bytes of each; "<s>" and the like for special ones; of numbers the number of each time
  /// step
  std::vector<std::string> tokens;
  index cut = 0;  ///< tokens of the text that the model did not read
  std::vector<ExplainedLayer> layers = {};
  /// [T], with joints [T, joints]: the weights of attention as pooling; empty: another one
  std::vector<float> pooling = {};
  /// The most probable labels or next tokens first; none for regression.
  std::vector<ExplainedLabel> prediction = {};
  std::string number = {};  ///< what a regression says
  Saliency saliency = {};
  std::vector<Words> notes = {};                ///< what to know of the text and of the saliency
  std::optional<ExplainedSample> numbers = {};  ///< of a model of numbers alone

  index joints() const { return numbers ? numbers->joints : 0; }
  /// The tokens that the sequences of the layer have.
  index tokens_of(const ExplainedLayer& layer) const {
    return layer.across ? joints() : static_cast<index>(tokens.size());
  }
};

/// What everyone who shows attention weights has to say beside them.
inline constexpr std::string_view kWeightsAreNoExplanation =
    "Attention weights are no explanation by themselves: they say where a head looked, not what "
    "decided.";

}  // namespace fovea
