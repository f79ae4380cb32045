// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/observed_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/base/machine.h"
#include "fovea/report/head_statistics.h"
#include "fovea/task/explain/rollout.h"

namespace fovea {

namespace {

std::vector<double> over(const std::vector<double>& sums, index queries) {
  std::vector<double> means(sums);
  for (double& mean : means) mean /= static_cast<double>(queries);
  return means;
}

// Whether the weights of each query that keeps a key sum to 1: not with sigmoid, or with a sink.
bool sum_to_one(const HeadWeights& head) {
  for (index query = 0; query < head.queries; ++query) {
    const std::span<const float> row = head.row(query);
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    if (sum != 0 && std::abs(sum - 1) > 1e-3) return false;
  }
  return true;
}

ExplainedLayer layer_of(const AttentionLayerName& layer, HeadStatistics seen, index tokens) {
  ExplainedLayer explained{
      .name = layer.name, .heads = layer.heads, .weights = std::move(seen.weights)};
  bool shares = true;
  for (index number = 1; number <= layer.heads; ++number) {
    const HeadWeights head = explained.head(number, tokens);
    explained.largest.push_back(head.weights[static_cast<std::size_t>(strongest_cell(head))]);
    shares = shares && sum_to_one(head);
  }
  if (!shares) return explained;
  explained.entropy = over(seen.entropy, seen.queries);
  explained.distance = over(seen.distance, seen.queries);
  return explained;
}

void require_finite(Variable logits) {
  with_type(logits.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> rows = logits.value<T>();
    for (index n = 0; n < rows.rows; ++n) {
      if (std::all_of(rows[n], rows[n] + rows.columns, [](T x) { return std::isfinite(x); })) {
        continue;
      }
      throw Error(ErrorCode::kModelDamaged, "explain: a logit of the model is not finite");
    }
  });
}

}  // namespace

void require_explain_memory(const ObservedText& text) {
  const double square = static_cast<double>(text.tokens) * static_cast<double>(text.tokens);
  double kept = 0, widest = 0;
  for (const AttentionLayerName& layer : text.layers) {
    const double bytes = square * static_cast<double>(layer.heads) * sizeof(float);
    kept += bytes;
    widest = std::max(widest, bytes);
  }
  require_memory(fmt::format("the weights of {} tokens", text.tokens),
                 kept + 2 * widest + text.tape_bytes,
                 "give a shorter text, or use a machine with more memory");
}

Variable observe_layers(Tape& tape, const ObservedText& text, Explanation& explanation) {
  std::vector<HeadStatistics> seen(text.layers.size());
  for (HeadStatistics& one : seen) one.keeps_weights = true;
  const Variable logits = text.logits(tape, seen, nullptr);
  require_finite(logits);
  for (std::size_t n = 0; n < seen.size(); ++n) {
    explanation.layers.push_back(layer_of(text.layers[n], std::move(seen[n]), text.tokens));
  }
  return logits;
}

std::vector<float> gradient_saliency(Tape& tape, const ObservedText& text, SaliencyMethod method,
                                     const std::function<Variable(Variable logits)>& of) {
  const bool length = method == SaliencyMethod::kGradient;
  tape.reset(TapeMode::kInputs);
  Variable inputs;
  tape.backward(of(text.logits(tape, {}, &inputs)));
  std::vector<float> saliency(static_cast<std::size_t>(text.tokens));
  with_type(inputs.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> x = inputs.value<T>(), dx = inputs.gradient<T>();
    for (index t = 0; t < dx.rows; ++t) {
      double sum = 0;
      for (index c = 0; c < x.columns; ++c) sum += double{(length ? dx : x)[t][c]} * dx[t][c];
      saliency[static_cast<std::size_t>(t)] = static_cast<float>(length ? std::sqrt(sum) : sum);
    }
  });
  return saliency;
}

std::vector<float> rollout_of(const ObservedText& text, const Explanation& explanation,
                              std::span<const double> result) {
  const auto refuse = [](std::string_view why) {
    throw Error(ErrorCode::kOptionValue, fmt::format("--saliency rollout: {}", why),
                "choose --saliency gradient-input");
  };
  std::vector<RolloutLayer> layers;
  for (std::size_t n = 0; n < text.layers.size(); ++n) {
    const ExplainedLayer& layer = explanation.layers[n];
    if (text.layers[n].side_by_side) {
      refuse("layers of the model lie side by side, and it follows one after another");
    }
    if (layer.entropy.empty()) refuse("the weights of the model do not sum to 1");
    layers.push_back({layer.weights, layer.heads, text.layers[n].residual});
  }
  return attention_rollout(layers, result);
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const token> ids) {
  const SpecialTokens special = tokenizer.special();
  std::vector<std::string> texts;
  for (const token id : ids) {
    std::string& text = texts.emplace_back();
    tokenizer.append_bytes(text, id);
    if (!text.empty()) continue;
    text = id == special.begin ? "<s>" : id == special.end ? "</s>" : "<pad>";
  }
  return texts;
}

void note_unknown(const Tokenizer& tokenizer, std::span<const token> ids,
                  Explanation& explanation) {
  const token unknown = tokenizer.special().unknown;
  const auto count = unknown == kNoToken ? 0 : std::count(ids.begin(), ids.end(), unknown);
  if (count == 0) return;
  explanation.notes.push_back(
      {fmt::format(
           "{} of {} tokens are words that the model does not know; it reads each as <unk>.", count,
           ids.size()),
       fmt::format("{1} 个词元中有 {0} 个是模型不认识的词，都读作 <unk>。", count, ids.size())});
}

}  // namespace fovea
