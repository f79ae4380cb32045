// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/explain_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/explain/layers.h"
#include "fovea/report/attention_data.h"
#include "fovea/report/terminal.h"
#include "fovea/report/token_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

std::string in_quotes(std::string_view text, QuoteLength length) {
  const std::string escaped = escape_text(text);
  return fmt::format("\"{}\"",
                     length == QuoteLength::kWhole ? escaped : fit_columns(escaped, kLongestToken));
}

Words filled(const QuotingWords& words, QuoteLength length) {
  const auto fill = [&](std::string_view pattern) {
    std::string text;
    while (!pattern.empty()) {
      const bool is_place = pattern.size() >= 3 && pattern[0] == '{' && pattern[2] == '}';
      if (is_place) {
        text += in_quotes(words.quoted.at(static_cast<std::size_t>(pattern[1] - '0')), length);
      } else {
        text += pattern[0];
      }
      pattern.remove_prefix(is_place ? 3 : 1);
    }
    return text;
  };
  return {fill(words.english), fill(words.chinese)};
}

std::string it_has(std::span<const std::string> names) {
  constexpr std::size_t kMostNamed = 8;
  std::string text = "it has ";
  for (std::size_t n = 0; n < std::min(names.size(), kMostNamed); ++n) {
    text += (n > 0 ? ", " : "") + excerpt(names[n]);
  }
  return names.size() > kMostNamed ? text + ", ..." : text;
}

void require_attention(bool has_attention, std::string_view what, std::string_view hint) {
  if (has_attention) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("explain: the {} has no attention, and so no weights", what),
              std::string(hint));
}

void require_target_counts(const ExplainOptions& options) {
  const bool has_gradient = options.saliency == SaliencyMethod::kGradientInput ||
                            options.saliency == SaliencyMethod::kGradient;
  if (options.target.empty() || has_gradient) return;
  throw Error(
      ErrorCode::kOptionValue,
      fmt::format("--target: has no effect with --saliency {}", to_string(options.saliency)),
      "leave it out, or choose --saliency gradient-input or gradient");
}

void require_tokens(bool has_tokens) {
  if (has_tokens) return;
  throw Error(ErrorCode::kInputTooSmall, "explain: the text holds no token",
              "give a text of at least one word");
}

void require_token_memory(const Tokenizer& tokenizer, std::string_view text) {
  require_memory("the tokens of the text",
                 3.0 * sizeof(token) * static_cast<double>(tokenizer.token_count(text)),
                 "give a shorter text, or use a machine with more memory");
}

std::vector<index> descending(Vec<const float> values) {
  std::vector<index> order(static_cast<std::size_t>(values.size));
  std::iota(order.begin(), order.end(), index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](index a, index b) { return values[a] > values[b]; });
  return order;
}

void note_rollout(const std::vector<SizedStage>& stages, Explanation& explanation) {
  if (!has_other_mixing(stages)) return;
  explanation.notes.push_back(
      {"Rollout follows attention and residual sums alone; the recurrent layers or convolutions of "
       "the model mix tokens, too.",
       "Rollout 只沿注意力和残差连接追踪；模型的循环层或卷积层也会混合词元。"});
}

std::string_view source_of(SaliencyMethod method) {
  switch (method) {
    case SaliencyMethod::kGradientInput:
      return "Simonyan et al. 2013, arXiv:1312.6034; Shrikumar et al. 2016, arXiv:1605.01713";
    case SaliencyMethod::kGradient:
      return "Simonyan et al. 2013, arXiv:1312.6034";
    case SaliencyMethod::kRollout:
      return "Abnar & Zuidema 2020, arXiv:2005.00928";
    case SaliencyMethod::kNone:
      break;
  }
  return "";
}

StrongestWeight strongest_weight(const ExplainedLayer& layer, index head) {
  StrongestWeight best;
  float most = -1;
  for (index sequence = 0; sequence < layer.sequences; ++sequence) {
    const HeadWeights weights = layer.head(head, sequence);
    const index cell = strongest_cell(weights);
    const float size = std::abs(weights.weights[static_cast<std::size_t>(cell)]);
    if (size <= most) continue;
    most = size;
    best = {sequence, cell / layer.keys, cell % layer.keys};
  }
  return best;
}

LayerTokens queries_of(const Explanation& explanation, const ExplainedLayer& layer) {
  if (layer.place == AttentionPlace::kText) return {explanation.tokens};
  return {explanation.translation->tokens};
}

LayerTokens keys_of(const Explanation& explanation, const ExplainedLayer& layer) {
  if (layer.place != AttentionPlace::kDecoder) return {explanation.tokens};
  LayerTokens keys{.tokens = {"<s>"}, .first = 0};
  const std::vector<std::string>& written = explanation.translation->tokens;
  keys.tokens.insert(keys.tokens.end(), written.begin(), written.end() - 1);
  return keys;
}

}  // namespace fovea
