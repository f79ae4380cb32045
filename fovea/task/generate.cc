// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/generate.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fovea {

namespace {

constexpr std::string_view kLines = "lines";

std::vector<token> first_tokens(const LoadedLanguageModel& loaded, std::string_view prompt) {
  std::vector<token> tokens;
  if (loaded.settings.text.data == kLines) {
    tokens.push_back(kBeginToken);
  } else if (prompt.empty()) {
    prompt = "\n";
  }
  const std::vector<token> encoded = loaded.tokenizer->encode(prompt, "prompt");
  tokens.insert(tokens.end(), encoded.begin(), encoded.end());
  return tokens;
}

// The tokens that were never a target in training, in ascending order: their logits say nothing.
std::vector<token> never_trained(const LoadedLanguageModel& loaded) {
  const bool lines = loaded.settings.text.data == kLines;
  std::vector<token> ids;
  for (token id = 0; id < loaded.tokenizer->vocabulary_size(); ++id) {
    const bool ends_a_line = lines && id == kEndToken;
    if (!ends_a_line && !loaded.tokenizer->occurs_in_learned_text(id)) ids.push_back(id);
  }
  return ids;
}

std::span<const token> seen_by_model(const std::vector<token>& tokens, index block) {
  const auto n = std::min(tokens.size(), static_cast<std::size_t>(block));
  return {tokens.data() + tokens.size() - n, n};
}

}  // namespace

index generate_text(const Context& context, const LoadedLanguageModel& loaded,
                    std::string_view prompt, const SamplingOptions& options,
                    const std::function<bool(std::string_view)>& write) {
  check_options(options);
  const std::vector<token> ruled_out = never_trained(loaded);
  std::vector<token> tokens = first_tokens(loaded, prompt);
  std::vector<token> next = tokens;
  LanguageModelDecoder decoder(context, *loaded.model);
  StreamDecoder text(*loaded.tokenizer);
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
    if (chosen == kEndToken) break;
    if (!write(text.push(chosen))) return number + 1;
    tokens.push_back(chosen);
    next = {chosen};
  }
  write(text.finish());
  return number;
}

}  // namespace fovea
