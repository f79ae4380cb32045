// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/observed_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/base/machine.h"
#include "fovea/explain/rollout.h"
#include "fovea/model/finite_logits.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

constexpr std::string_view kLogit = "explain: a logit of the model";

std::vector<double> over(const std::vector<double>& sums, index queries) {
  std::vector<double> means(sums);
  for (double& mean : means) mean /= static_cast<double>(queries);
  return means;
}

// Whether the weights of each query that keeps a key sum to 1: not with sigmoid, or with a sink.
bool sum_to_one(const ExplainedLayer& layer) {
  const std::vector<float>& weights = layer.weights;
  for (auto row = weights.begin(); row != weights.end(); row += layer.keys) {
    const double sum = std::accumulate(row, row + layer.keys, 0.0);
    if (sum != 0 && std::abs(sum - 1) > 1e-3) return false;
  }
  return true;
}

// Takes [sequences, heads, n, n] out of [heads, rows, rows], whose other weights are 0.
std::vector<float> within_sequences(const std::vector<float>& weights, const ExplainedLayer& layer,
                                    index rows) {
  const index n = layer.keys;
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

// The size of a layer's map for one sequence.
struct LayerSize {
  index queries = 0, keys = 0;
};

LayerSize size_of(const AttentionLayerName& layer, const ObservedText& text) {
  const index tokens = layer.across ? text.joints : text.tokens;
  return {layer.place == AttentionPlace::kText ? tokens : text.written,
          layer.place == AttentionPlace::kDecoder ? text.written : tokens};
}

ExplainedLayer layer_of(const AttentionLayerName& layer, HeadStatistics seen,
                        const ObservedText& text) {
  const auto [queries, keys] = size_of(layer, text);
  ExplainedLayer explained{.name = layer.name,
                           .heads = layer.heads,
                           .queries = queries,
                           .keys = keys,
                           .sequences = layer.across      ? text.tokens
                                        : text.joints > 0 ? text.joints
                                                          : 1,
                           .across = layer.across,
                           .place = layer.place};
  explained.weights = explained.sequences == 1
                          ? std::move(seen.weights)
                          : within_sequences(seen.weights, explained, text.rows());
  for (index number = 1; number <= layer.heads; ++number) {
    const auto [sequence, query, key] = strongest_weight(explained, number);
    explained.largest.push_back(
        explained.head(number, sequence).row(query)[static_cast<std::size_t>(key)]);
  }
  if (!sum_to_one(explained)) return explained;
  explained.entropy = over(seen.entropy, seen.queries);
  const bool has_order = !layer.across && layer.place != AttentionPlace::kCross;
  if (has_order) explained.distance = over(seen.distance, seen.queries);
  return explained;
}

}  // namespace

void require_explain_memory(const ObservedText& text) {
  const bool numbers = text.joints > 0;
  double kept = 0, widest = 0;
  for (const AttentionLayerName& layer : text.layers) {
    const auto [queries, keys] = size_of(layer, text);
    // With joints the weights come with those between sequences.
    const index rows = numbers ? text.rows() : queries, columns = numbers ? text.rows() : keys;
    const double row_bytes = sizeof(float) * static_cast<double>(layer.heads * rows);
    kept += row_bytes * static_cast<double>(keys);
    widest = std::max(widest, row_bytes * static_cast<double>(columns));
  }
  require_memory(fmt::format("the weights of {} {}", text.rows(), numbers ? "rows" : "tokens"),
                 kept + (numbers ? 3 : 2) * widest + text.tape_bytes,
                 numbers ? "give a shorter sample, or use a machine with more memory"
                         : "give a shorter text, or use a machine with more memory");
}

Variable observe_layers(Tape& tape, const ObservedText& text, Explanation& explanation) {
  std::vector<HeadStatistics> seen(text.layers.size());
  // With joints, the weights come with zeros between sequences: many times as many as there are. So
  // there is a forward for each layer, and only its weights are kept.
  for (std::size_t n = 0; text.joints > 0 && n < seen.size(); ++n) {
    tape.reset(TapeMode::kInference);
    std::vector<HeadStatistics> one(seen.size());
    one[n].keeps_weights = true;
    require_finite(text.logits(tape, one, nullptr), kLogit);
    explanation.layers.push_back(layer_of(text.layers[n], std::move(one[n]), text));
  }
  tape.reset(TapeMode::kInference);
  if (text.joints > 0) seen.clear();
  for (HeadStatistics& one : seen) one.keeps_weights = true;
  const Variable logits = text.logits(tape, seen, nullptr);
  require_finite(logits, kLogit);
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
    if (!text.empty() && id != special.end) continue;
    text = id == special.begin ? "<s>" : id == special.end ? "</s>" : "<pad>";
  }
  return texts;
}

void write_unknown(const Tokenizer& tokenizer, std::span<const token> ids, std::string_view text,
                   bool at_end, std::vector<std::string>& texts) {
  const token unknown = tokenizer.special().unknown;
  if (unknown == kNoToken || std::find(ids.begin(), ids.end(), unknown) == ids.end()) return;
  const TokenizerData data = tokenizer.data();
  if (data.kind != kWordKind) return;
  std::vector<std::string_view> words;
  while (!(words.emplace_back(take_word(text, data.split))).empty()) continue;
  words.pop_back();
  const auto before = at_end ? std::ssize(words) - std::ssize(ids) : std::ptrdiff_t{0};
  for (std::size_t n = 0; n < ids.size(); ++n) {
    if (ids[n] != unknown) continue;
    texts[n] = words[static_cast<std::size_t>(before + static_cast<std::ptrdiff_t>(n))];
  }
}

void note_unknown(const Tokenizer& tokenizer, std::span<const token> ids, Explanation& explanation,
                  UnknownIn where) {
  const token unknown = tokenizer.special().unknown;
  const auto count = unknown == kNoToken ? 0 : std::count(ids.begin(), ids.end(), unknown);
  if (count == 0) return;
  if (where == UnknownIn::kTranslation) {
    explanation.notes.push_back(
        {fmt::format("{} of {} tokens of the translation are words that the model does not know; "
                     "it is made to write <unk> for each.",
                     count, ids.size()),
         fmt::format("译文的 {1} 个词元中有 {0} 个是模型不认识的词，都让它写作 <unk>。", count,
                     ids.size())});
    return;
  }
  explanation.notes.push_back(
      {fmt::format(
           "{} of {} tokens are words that the model does not know; it reads each as <unk>.", count,
           ids.size()),
       fmt::format("{1} 个词元中有 {0} 个是模型不认识的词，都读作 <unk>。", count, ids.size())});
}

}  // namespace fovea
