// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fovea/explain/observed_text.h"
#include "fovea/model/language_model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/language_model/generate.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kMostNextTokens = 5;

// The last `block` tokens.
std::vector<token> tokens_for(const LoadedLanguageModel& model, std::string_view text,
                              const ExplainOptions& options, index& cut) {
  const Tokenizer& tokenizer = *model.tokenizer;
  require_token_memory(tokenizer, text);
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
  saliency.of = {"the log-probability of {0} as next token",
                 "下一个词元为 {0} 的对数概率",
                 {name_of_token(model, target)}};
  saliency.values = gradient_saliency(tape, text, options.saliency, [&](Variable logits) {
    return scale(tape, cross_entropy(tape, logits, {.ids = {targets.data(), text.tokens}}), -1);
  });
}

}  // namespace

Explanation explain_text(const Context& context, const LoadedLanguageModel& model,
                         std::string_view text, const ExplainOptions& options) {
  const LanguageModelConfig& config = model.model->config();
  require_shown(model.model->attentions() > 0, options.saliency);
  require_target_counts(options);
  Explanation explanation{
      .kind = {"language model", "语言模型"}, .predicts_next = true, .tokens = {}};
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
      .tape_bytes = plan_pass(context, config, load).bytes() + logits_bytes};
  require_explain_memory(observed);
  explanation.tokens = token_texts(*model.tokenizer, ids);
  write_unknown(*model.tokenizer, ids, text, true, explanation.tokens);
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
