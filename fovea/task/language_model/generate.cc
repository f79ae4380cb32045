// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/generate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/task/language_model/cost.h"

namespace fovea {

namespace {

constexpr std::string_view kLines = "lines";

std::span<const token> seen_by_model(const std::vector<token>& tokens, index block) {
  const auto n = std::min(tokens.size(), static_cast<std::size_t>(block));
  return {tokens.data() + tokens.size() - n, n};
}

}  // namespace

std::vector<token> never_trained(const LoadedLanguageModel& loaded) {
  const bool lines = loaded.settings.text.data == kLines;
  const token end = loaded.tokenizer->special().end;
  std::vector<token> ids;
  for (token id = 0; id < loaded.tokenizer->vocabulary_size(); ++id) {
    const bool ends_a_line = lines && id == end;
    if (!ends_a_line && !loaded.tokenizer->occurs_in_learned_text(id)) ids.push_back(id);
  }
  return ids;
}

std::vector<token> prompt_tokens(const LoadedLanguageModel& loaded, std::string_view prompt) {
  const Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<token> tokens;
  if (loaded.settings.text.data == kLines) {
    if (tokenizer.special().begin != kNoToken) tokens.push_back(tokenizer.special().begin);
  } else if (prompt.empty()) {
    prompt = "\n";
  }
  tokenizer.append_tokens(tokens, prompt, "prompt");
  if (!tokens.empty()) return tokens;
  throw Error(
      ErrorCode::kInputTooSmall,
      "the prompt holds no token, and the text of this model begins with one",
      "give a prompt of at least one word; a model of --data lines with --marks needs none");
}

void require_generation_memory(const Context& context, const LoadedLanguageModel& loaded,
                               std::string_view prompt, const SamplingOptions& options) {
  // The prompt's tokens exist up to three times: encoded, with those before, and as the first
  // input.
  require_memory("the tokens of the prompt",
                 3.0 * sizeof(token) * static_cast<double>(loaded.tokenizer->token_count(prompt)),
                 "give a shorter prompt, or use a machine with more memory");
  const auto tokens = static_cast<index>(prompt_tokens(loaded, prompt).size());
  require_memory(
      "the text", generation_memory(context, loaded.settings.model, tokens, options.max_tokens),
      "give a shorter prompt or a smaller --max-tokens, or use a machine with more memory");
}

index unknown_words(const LoadedLanguageModel& loaded, std::string_view prompt) {
  const token unknown = loaded.tokenizer->special().unknown;
  if (unknown == kNoToken) return 0;
  const std::vector<token> tokens = loaded.tokenizer->encode(prompt, "prompt");
  return std::count(tokens.begin(), tokens.end(), unknown);
}

index generate_text(const Context& context, const LoadedLanguageModel& loaded,
                    std::string_view prompt, const SamplingOptions& options,
                    const std::function<bool(std::string_view)>& write) {
  check_options(options);
  const std::vector<token> ruled_out = never_trained(loaded);
  require_generation_memory(context, loaded, prompt, options);
  std::vector<token> tokens = prompt_tokens(loaded, prompt);
  std::vector<token> next = tokens;
  LanguageModelDecoder decoder(context, *loaded.model);
  StreamDecoder text(*loaded.tokenizer, prompt);
  const bool lines = loaded.settings.text.data == kLines;
  const token end = lines ? loaded.tokenizer->special().end : kNoToken;  // else a newline, or none
  std::vector<float> logits;
  index number = 0;
  for (; number < options.max_tokens; ++number) {
    const Vec<const float> raw = decoder.append({next.data(), static_cast<index>(next.size())});
    logits.assign(raw.begin(), raw.end());
    const Vec<float> choices{logits.data(), raw.size};
    for (const token id : ruled_out) choices[id] = -INFINITY;
    apply_repetition_penalty(choices, seen_by_model(tokens, loaded.settings.model.block),
                             options.repetition_penalty);
    const token chosen = sample_token(choices, options, static_cast<std::uint64_t>(number));
    if (chosen == end) break;
    if (!write(text.push(chosen))) return number + 1;
    tokens.push_back(chosen);
    next = {chosen};
  }
  write(text.finish());
  return number;
}

}  // namespace fovea
