// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/observed_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/base/machine.h"
#include "fovea/task/explain/rollout.h"

namespace fovea {

namespace {

std::vector<double> over(const std::vector<double>& sums, index queries) {
  std::vector<double> means(sums);
  for (double& mean : means) mean /= static_cast<double>(queries);
  return means;
}

// Whether the weights of each query that keeps a key sum to 1: not with sigmoid, or with a sink.
// `weights` are rows of n.
bool sum_to_one(const std::vector<float>& weights, index n) {
  for (auto row = weights.begin(); row != weights.end(); row += n) {
    const double sum = std::accumulate(row, row + n, 0.0);
    if (sum != 0 && std::abs(sum - 1) > 1e-3) return false;
  }
  return true;
}

// Of [heads, rows, rows], which are 0 between sequences, the [sequences, heads, n, n] within them.
std::vector<float> within_sequences(const std::vector<float>& weights, const ExplainedLayer& layer,
                                    index rows) {
  const index n = rows / layer.sequences;
  const index first = layer.across ? 1 : n, step = layer.across ? layer.sequences : 1;
  std::vector<float> within;
  within.reserve(static_cast<std::size_t>(layer.heads * rows * n));
  for (index s = 0; s < layer.sequences; ++s) {
    for (index h = 0; h < layer.heads; ++h) {
      for (index i = 0; i < n; ++i) {
        const float* const row = weights.data() + (h * rows + s * first + i * step) * rows;
        for (index j = 0; j < n; ++j) within.push_back(row[s * first + j * step]);
      }
    }
  }
  return within;
}

ExplainedLayer layer_of(const AttentionLayerName& layer, HeadStatistics seen,
                        const ObservedText& text) {
  ExplainedLayer explained{.name = layer.name,
                           .heads = layer.heads,
                           .sequences = layer.across      ? text.tokens
                                        : text.joints > 0 ? text.joints
                                                          : 1,
                           .across = layer.across};
  const index n = text.rows() / explained.sequences;
  explained.weights = explained.sequences == 1
                          ? std::move(seen.weights)
                          : within_sequences(seen.weights, explained, text.rows());
  for (index number = 1; number <= layer.heads; ++number) {
    const auto [sequence, query, key] = strongest_weight(explained, number, n);
    explained.largest.push_back(
        explained.head(number, n, sequence).row(query)[static_cast<std::size_t>(key)]);
  }
  if (!sum_to_one(explained.weights, n)) return explained;
  explained.entropy = over(seen.entropy, seen.queries);
  if (!layer.across) explained.distance = over(seen.distance, seen.queries);
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
  const auto rows = static_cast<double>(text.rows());
  double kept = 0, widest = 0;
  for (const AttentionLayerName& layer : text.layers) {
    const double n = static_cast<double>(layer.across ? text.joints : text.tokens);
    const double row_bytes = rows * static_cast<double>(layer.heads) * sizeof(float);
    kept += row_bytes * n;
    widest = std::max(widest, row_bytes * rows);
  }
  const bool numbers = text.joints > 0;
  require_memory(fmt::format("the weights of {} {}", text.rows(), numbers ? "rows" : "tokens"),
                 kept + (numbers ? 3 : 2) * widest + text.tape_bytes,
                 numbers ? "give a shorter sample, or use a machine with more memory"
                         : "give a shorter text, or use a machine with more memory");
}

Variable observe_layers(Tape& tape, const ObservedText& text, Explanation& explanation) {
  std::vector<HeadStatistics> seen(text.layers.size());
  // Of joints, the weights come with zeros between sequences: many times as many as there are. So
  // there is a forward for each layer, and only its weights are kept.
  for (std::size_t n = 0; text.joints > 0 && n < seen.size(); ++n) {
    tape.reset(TapeMode::kInference);
    std::vector<HeadStatistics> one(seen.size());
    one[n].keeps_weights = true;
    require_finite(text.logits(tape, one, nullptr));
    explanation.layers.push_back(layer_of(text.layers[n], std::move(one[n]), text));
  }
  tape.reset(TapeMode::kInference);
  if (text.joints > 0) seen.clear();
  for (HeadStatistics& one : seen) one.keeps_weights = true;
  const Variable logits = text.logits(tape, seen, nullptr);
  require_finite(logits);
  for (std::size_t n = 0; n < seen.size(); ++n) {
    explanation.layers.push_back(layer_of(text.layers[n], std::move(seen[n]), text));
  }
  return logits;
}

std::vector<float> gradient_saliency(Tape& tape, const ObservedText& text, SaliencyMethod method,
                                     const std::function<Variable(Variable logits)>& of) {
  const bool length = method == SaliencyMethod::kGradient;
  tape.reset(TapeMode::kInputs);
  Variable inputs;
  tape.backward(of(text.logits(tape, {}, &inputs)));
  std::vector<float> saliency(static_cast<std::size_t>(text.rows()));
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
    layers.push_back(
        {layer.weights, layer.heads, text.layers[n].residual, layer.sequences, layer.across});
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
