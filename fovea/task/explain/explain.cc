// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/model/classifier_memory.h"
#include "fovea/model/language_model_memory.h"
#include "fovea/model/language_model_stages.h"
#include "fovea/task/explain/observed_text.h"
#include "fovea/task/generate.h"
#include "fovea/task/prediction_line.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kMostNextTokens = 5;

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

// The numbers of the logits or probabilities, the largest first; of equal ones the first.
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

// ---- classifiers

// sign x one of the logits.
struct Logit {
  index column = 0;
  float sign = 1;
  Words name;
};

index label_number(const LoadedClassifier& model, const std::string& label) {
  const auto found = std::find(model.labels.begin(), model.labels.end(), label);
  if (found != model.labels.end()) return found - model.labels.begin();
  constexpr std::size_t kMostNamed = 8;
  std::string known;
  for (std::size_t n = 0; n < std::min(model.labels.size(), kMostNamed); ++n) {
    known += (n > 0 ? ", " : "") + excerpt(model.labels[n]);
  }
  throw Error(
      ErrorCode::kOptionValue, fmt::format("--target: the model has no label {}", excerpt(label)),
      model.labels.empty()
          ? "leave it out: the model tells a number"
          : fmt::format("it has {}{}", known, model.labels.size() > kMostNamed ? ", ..." : ""));
}

Logit logit_of(const LoadedClassifier& model, const std::string& target, index likeliest) {
  const ClassifierTask task = model.model->config().task;
  if (task == ClassifierTask::kRegression && target.empty()) {
    return {
        .name = {"the number, in units of its standard deviation", "预测值（以其标准差为单位）"}};
  }
  const index label = target.empty() ? likeliest : label_number(model, target);
  const std::string quotes = in_quotes(model.labels[static_cast<std::size_t>(label)]);
  const Words name{"the logit of " + quotes, quotes + " 的 logit"};
  if (task != ClassifierTask::kBinary) return {label, 1, name};
  return {0, label == 1 ? 1.0F : -1.0F, name};  // one logit says both
}

Variable pick(Tape& tape, Variable logits, const Logit& logit) {
  const index K = logits.columns();
  const Variable column = tape.result(1, K, logits.dtype());
  with_type(logits.dtype(), [&]<class T>(std::type_identity<T>) {
    std::fill_n(column.value<T>()[0], K, T{0});
    column.value<T>()[0][logit.column] = static_cast<T>(logit.sign);
  });
  return linear(tape, logits, column);
}

// How much of each row the result of pooling holds.
std::vector<double> pooled_from(PoolingKind pooling, const Explanation& explanation, index tokens) {
  const auto T = static_cast<std::size_t>(tokens);
  if (pooling == PoolingKind::kAttention) {
    return {explanation.pooling.begin(), explanation.pooling.end()};
  }
  std::vector<double> rows(T);
  if (pooling == PoolingKind::kFirst) rows.front() = 1;
  if (pooling == PoolingKind::kLast) rows.back() = 1;
  if (pooling == PoolingKind::kMean || pooling == PoolingKind::kMax) {
    rows.assign(T, 1 / static_cast<double>(T));
  }
  return rows;
}

void add_prediction(const LoadedClassifier& model, Vec<const float> values,
                    Explanation& explanation) {
  if (model.model->config().task == ClassifierTask::kRegression) {
    for (const float value : values) {
      explanation.number += explanation.number.empty() ? "" : " ";
      explanation.number += number_text(value, model.numbers);
    }
    return;
  }
  for (const index k : descending(values)) {
    explanation.prediction.push_back(
        {model.labels[static_cast<std::size_t>(k)], double{values[k]}});
  }
}

void add_saliency(Tape& tape, const LoadedClassifier& model, const ObservedText& text,
                  const ExplainOptions& options, Explanation& explanation) {
  const ClassifierConfig& config = model.model->config();
  Saliency& saliency = explanation.saliency;
  if (options.saliency == SaliencyMethod::kNone) return;
  if (options.saliency == SaliencyMethod::kRollout) {
    saliency.values =
        rollout_of(text, explanation, pooled_from(config.pooling, explanation, text.tokens));
    const std::string_view pooling = to_string(config.pooling);
    saliency.of = {fmt::format("the pooled text ({})", pooling),
                   fmt::format("池化后的文本（{}）", pooling)};
    note_rollout(sized_stages(config), explanation);
    if (config.pooling == PoolingKind::kMax) {
      explanation.notes.push_back({"Rollout takes the maximum over the rows as their mean.",
                                   "Rollout 把各行的最大值当作平均值处理。"});
    }
    return;
  }
  const index likeliest =
      explanation.prediction.empty() ? 0 : label_number(model, explanation.prediction[0].label);
  const Logit logit = logit_of(model, options.target, likeliest);
  saliency.of = logit.name;
  saliency.values = gradient_saliency(tape, text, options.saliency,
                                      [&](Variable logits) { return pick(tape, logits, logit); });
  if (config.ngrams != 1) {
    explanation.notes.push_back(
        {"The model reads n-grams, too: what they add to the logit belongs to no single token, and "
         "is left out of the saliency.",
         "模型还读取 n-gram：它们对 logit 的贡献不属于单个词元，不计入显著性。"});
  }
}

// ---- language models

// The last `block` tokens.
std::vector<token> tokens_for(const LoadedLanguageModel& model, std::string_view text,
                              const ExplainOptions& options, index& cut) {
  const Tokenizer& tokenizer = *model.tokenizer;
  require_memory("the tokens of the text",
                 3.0 * sizeof(token) * static_cast<double>(tokenizer.token_count(text)),
                 "give a shorter text, or use a machine with more memory");
  require_tokens(!tokenizer.encode(text, "text").empty());
  std::vector<token> ids = prompt_tokens(model, text);
  const index block = model.model->config().block, length = static_cast<index>(ids.size());
  cut = std::max<index>(0, length - block);
  if (cut == 0) return ids;
  if (!options.truncate) {
    throw Error(
        ErrorCode::kShape,
        fmt::format("explain: the text has {} tokens; the model sees at most {}", length, block),
        "give a shorter text, or say --truncate to keep the last ones");
  }
  ids.erase(ids.begin(), ids.begin() + cut);
  return ids;
}

token target_token(const LoadedLanguageModel& model, const std::string& target, token likeliest) {
  if (target.empty()) return likeliest;
  const std::vector<token> ids = model.tokenizer->encode(target, "--target");
  if (ids.size() == 1) return ids[0];
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--target: {} is {} tokens; expected one", excerpt(target), ids.size()),
              "name one token, as --json lists them");
}

std::string name_of_token(const LoadedLanguageModel& model, token id) {
  return token_texts(*model.tokenizer, {&id, 1})[0];
}

// Returns the likeliest.
token add_next_tokens(const LoadedLanguageModel& model, Vec<const float> logits,
                      Explanation& explanation) {
  const std::vector<index> order = descending(logits);
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit} - double{logits[order[0]]});
  for (std::size_t n = 0; n < std::min(order.size(), kMostNextTokens); ++n) {
    const double p = std::exp(double{logits[order[n]]} - double{logits[order[0]]}) / total;
    explanation.prediction.push_back({name_of_token(model, static_cast<token>(order[n])), p});
  }
  return static_cast<token>(order[0]);
}

void add_saliency(Tape& tape, const LoadedLanguageModel& model, const ObservedText& text,
                  token target, const ExplainOptions& options, Explanation& explanation) {
  Saliency& saliency = explanation.saliency;
  if (options.saliency == SaliencyMethod::kNone) return;
  if (options.saliency == SaliencyMethod::kRollout) {
    std::vector<double> last(static_cast<std::size_t>(text.tokens));
    last.back() = 1;
    saliency.values = rollout_of(text, explanation, last);
    saliency.of = {"the last row, which predicts the next token", "预测下一个词元的最后一行"};
    note_rollout(sized_stages(model.model->config()), explanation);
    return;
  }
  std::vector<std::int32_t> targets(static_cast<std::size_t>(text.tokens), -1);
  targets.back() = target;
  const std::string quotes = in_quotes(name_of_token(model, target));
  saliency.of = {fmt::format("the log-probability of {} as next token", quotes),
                 fmt::format("下一个词元为 {} 的对数概率", quotes)};
  saliency.values = gradient_saliency(tape, text, options.saliency, [&](Variable logits) {
    return scale(tape, cross_entropy(tape, logits, {.ids = {targets.data(), text.tokens}}), -1);
  });
}

}  // namespace

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

Explanation explain_text(const Context& context, const LoadedClassifier& model,
                         std::string_view text, const ExplainOptions& options) {
  if (model.reads_frames()) {
    throw Error(ErrorCode::kModelWrongKind, "explain: the model reads numbers, not texts",
                "fovea classify DIR FILE.npz --weights WEIGHTS.npz writes where it looked");
  }
  const ClassifierConfig& config = model.model->config();
  const bool pools = config.pooling == PoolingKind::kAttention;
  require_attention(pools || model.model->attentions() > 0);
  require_target_counts(options);
  const TextTokens tokens = tokens_of_text(*model.tokenizer, model.settings.text, text, "text");
  // A text without a token became one of padding, which no text has.
  require_tokens(tokens.ids.size() > 1 || tokens.ids[0] != kPadToken);
  const auto T = static_cast<index>(tokens.ids.size());
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(T)};
  const TextRows rows{.ids = {tokens.ids.data(), T}, .offsets = {offsets.data(), 2}};
  const TextLoad load{.texts = 1, .tape = {.tokens = T, .observes = true, .sequences = 1}};
  const ObservedText observed{
      .logits =
          [&](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
            return model.model->logits(tape, rows, {.attention = seen, .inputs = inputs});
          },
      .layers = attention_layers(sized_stages(config)),
      .tokens = T,
      .tape_bytes = activation_bytes(config, load) + packed_bytes(config, load) +
                    scratch_bytes(context, config, load)};
  require_explain_memory(observed);
  Explanation explanation{.kind = "text classifier",
                          .tokens = token_texts(*model.tokenizer, tokens.ids),
                          .cut = tokens.length - T};
  note_unknown(*model.tokenizer, tokens.ids, explanation);
  Tape tape(context, TapeMode::kInference);
  const Variable logits = observe_layers(tape, observed, explanation);
  const Rows<const float> values = model.model->predictions_of(tape, logits).value<float>();
  add_prediction(model, {values[0], values.columns}, explanation);
  if (pools) {
    const std::vector<double> weights = model.model->token_weights(tape, rows);
    explanation.pooling.assign(weights.begin(), weights.end());
  }
  explanation.saliency.method = options.saliency;
  add_saliency(tape, model, observed, options, explanation);
  return explanation;
}

Explanation explain_text(const Context& context, const LoadedLanguageModel& model,
                         std::string_view text, const ExplainOptions& options) {
  const LanguageModelConfig& config = model.model->config();
  require_attention(model.model->attentions() > 0);
  require_target_counts(options);
  Explanation explanation{.kind = "language model", .tokens = {}};
  const std::vector<token> ids = tokens_for(model, text, options, explanation.cut);
  const auto T = static_cast<index>(ids.size());
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(T)};
  const TokenBatch batch{.ids = {ids.data(), T}, .offsets = {offsets.data(), 2}};
  const TapeLoad load{.tokens = T, .observes = true, .sequences = 1};
  const double logits_bytes = 3.0 * sizeof(float) * static_cast<double>(T * config.vocabulary);
  const ObservedText observed{
      .logits =
          [&](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
            return model.model->logits(tape, batch, {.attention = seen, .inputs = inputs});
          },
      .layers = attention_layers(sized_stages(config)),
      .tokens = T,
      .tape_bytes = activation_bytes(config, load) + packed_bytes(config, load) +
                    scratch_bytes(context, config, load) + logits_bytes};
  require_explain_memory(observed);
  explanation.tokens = token_texts(*model.tokenizer, ids);
  note_unknown(*model.tokenizer, ids, explanation);
  Tape tape(context, TapeMode::kInference);
  const Rows<const float> logits = observe_layers(tape, observed, explanation).value<float>();
  const token likeliest = add_next_tokens(model, {logits[T - 1], logits.columns}, explanation);
  const token target = target_token(model, options.target, likeliest);
  explanation.saliency.method = options.saliency;
  add_saliency(tape, model, observed, target, options, explanation);
  return explanation;
}

}  // namespace fovea
