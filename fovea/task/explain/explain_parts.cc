// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/explain_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/error.h"
#include "fovea/report/head_statistics.h"
#include "fovea/task/explain/layers.h"
#include "fovea/text/utf8.h"

namespace fovea {

std::string in_quotes(std::string_view text) { return fmt::format("\"{}\"", escape_text(text)); }

void require_attention(bool has_attention) {
  if (has_attention) return;
  throw Error(ErrorCode::kModelWrongKind, "explain: the model has no attention, and so no weights",
              "train one with attention: --model transformer, attention in --encoder, or --pooling "
              "attention");
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

StrongestWeight strongest_weight(const ExplainedLayer& layer, index head, index tokens) {
  StrongestWeight best;
  float most = -1;
  for (index sequence = 0; sequence < layer.sequences; ++sequence) {
    const HeadWeights weights = layer.head(head, tokens, sequence);
    const index cell = strongest_cell(weights);
    const float size = std::abs(weights.weights[static_cast<std::size_t>(cell)]);
    if (size <= most) continue;
    most = size;
    best = {sequence, cell / tokens, cell % tokens};
  }
  return best;
}

}  // namespace fovea
