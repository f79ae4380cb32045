// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/observed_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/explain/explanation.h"
#include "fovea/model/text_batch.h"
#include "fovea/report/attention_data.h"
#include "fovea/report/terminal.h"
#include "fovea/report/token_text.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

// One sequence of a layer: its heads, and which tokens it has.
struct Sequence {
  const float* weights;  // [heads, n, n]
  std::size_t n, first, step;

  std::size_t token(std::size_t i) const { return first + i * step; }
};

// A row vector times a matrix: n x n numbers for each head, never n^3.
void add_sequence(const RolloutLayer& layer, const Sequence& of, const std::vector<double>& r,
                  std::vector<double>& next) {
  const std::size_t n = of.n, H = static_cast<std::size_t>(layer.heads);
  for (std::size_t i = 0; i < n; ++i) {
    double total = 0;
    for (std::size_t h = 0; h < H; ++h) {
      const float* const row = of.weights + (h * n + i) * n;
      for (std::size_t j = 0; j < n; ++j) total += double{row[j]};
    }
    const double here = r[of.token(i)];
    const double own = layer.residual ? (total > 0 ? 0.5 : 1.0) : 0.0;
    next[of.token(i)] += own * here;
    const double share = here * (layer.residual ? 0.5 : 1.0) / static_cast<double>(H);
    for (std::size_t h = 0; total > 0 && h < H; ++h) {
      const float* const row = of.weights + (h * n + i) * n;
      for (std::size_t j = 0; j < n; ++j) next[of.token(j)] += share * double{row[j]};
    }
  }
}

// r A of one layer.
std::vector<double> through(const RolloutLayer& layer, const std::vector<double>& r) {
  const auto sequences = static_cast<std::size_t>(layer.sequences);
  const std::size_t n = r.size() / sequences, size = static_cast<std::size_t>(layer.heads) * n * n;
  std::vector<double> next(r.size());
  for (std::size_t s = 0; s < sequences; ++s) {
    add_sequence(layer,
                 {.weights = layer.weights.data() + s * size,
                  .n = n,
                  .first = layer.across ? s : s * n,
                  .step = layer.across ? sequences : 1},
                 r, next);
  }
  return next;
}

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

void require_shown(bool has_weights, SaliencyMethod saliency) {
  const bool needs_weights =
      saliency == SaliencyMethod::kRollout || saliency == SaliencyMethod::kNone;
  if (has_weights || !needs_weights) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--saliency {}: the model has no attention, and so no weights",
                          to_string(saliency)),
              "choose --saliency gradient-input or gradient");
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

std::vector<float> attention_rollout(std::span<const RolloutLayer> layers,
                                     std::span<const double> result) {
  std::vector<double> r(result.begin(), result.end());
  for (std::size_t l = layers.size(); l-- > 0;) {
    const auto sequences = static_cast<std::size_t>(layers[l].sequences);
    const std::size_t n = r.size() / sequences;
    check(n * sequences == r.size() &&
              layers[l].weights.size() ==
                  sequences * static_cast<std::size_t>(layers[l].heads) * n * n,
          "rollout: layer {} has {} weights for {} heads, {} tokens and {} sequences", l + 1,
          layers[l].weights.size(), layers[l].heads, r.size(), sequences);
    r = through(layers[l], r);
  }
  return {r.begin(), r.end()};
}

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

std::vector<double> weighed_inputs(Variable inputs, SaliencyMethod method) {
  const bool length = method == SaliencyMethod::kGradient;
  std::vector<double> weighed;
  with_type(inputs.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> x = inputs.value<T>(), dx = inputs.gradient<T>();
    for (index t = 0; t < dx.rows; ++t) {
      double sum = 0;
      for (index c = 0; c < x.columns; ++c) sum += double{(length ? dx : x)[t][c]} * dx[t][c];
      weighed.push_back(length ? std::sqrt(sum) : sum);
    }
  });
  return weighed;
}

std::vector<float> gradient_saliency(Tape& tape, const ObservedText& text, SaliencyMethod method,
                                     const std::function<Variable(Variable logits)>& of) {
  tape.reset(TapeMode::kInputs);
  Variable inputs;
  tape.backward(of(text.logits(tape, {}, &inputs)));
  const std::vector<double> weighed = weighed_inputs(inputs, method);
  return {weighed.begin(), weighed.end()};
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
