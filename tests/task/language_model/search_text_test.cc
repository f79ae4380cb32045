// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "fovea/kernel/softmax.h"
#include "fovea/task/language_model/generate.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

LoadedLanguageModel model_of(const TestFolder& folder, LanguageModelSettings settings) {
  return load_language_model(tiny_model(folder, settings));
}

LanguageModelSettings line_settings(const TestFolder& folder) {
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.data = "lines";
  settings.model.block = 32;
  settings.recipe.lr = 1e-2;
  settings.recipe.stop_after = "120u";
  return settings;
}

// The log probabilities of all tokens behind a text, encoded anew.
std::vector<double> next_of(const LoadedLanguageModel& loaded, const std::vector<token>& tokens) {
  LanguageModelDecoder decoder(Context(1), *loaded.model);
  const std::vector<float> logits =
      to_vector(decoder.append({tokens.data(), static_cast<index>(tokens.size())}));
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});
  std::vector<double> all;
  for (const float x : logits) all.push_back(double{x} - std::log(sum));
  return all;
}

TEST(SearchText, ABeamOfOneIsGreedy) {
  for (const char* data : {"blocks", "lines"}) {
    const TestFolder folder;
    LanguageModelSettings settings = line_settings(folder);
    settings.text.data = data;
    const LoadedLanguageModel loaded = model_of(folder, settings);
    for (const double penalty : {1.0, 1.3}) {
      const SamplingOptions options{
          .max_tokens = 45, .repetition_penalty = penalty, .greedy = true};
      std::string greedy;
      const index tokens = generate_text(Context(1), loaded, "the", options, [&](auto part) {
        greedy += part;
        return true;
      });
      const FoundText found = search_text(Context(1), loaded, "the", options, {.beam = 1});
      EXPECT_EQ(found.text, greedy) << data;
      EXPECT_EQ(found.tokens, tokens);
    }
  }
}

// What the searcher is told is what the model says of each hypothesis, encoded anew: where
// hypotheses are dropped, go on in two ways, and are longer than the block.
TEST(SearchText, HypothesesAreReadAsIfAlone) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = model_of(folder, tiny_settings(folder));  // block 12
  const Context context(2);
  std::vector<token> prompt = loaded.tokenizer->encode("the cat", "prompt");
  const token begin = prompt.back();
  prompt.pop_back();
  LanguageModelSearch search(context, *loaded.model, prompt, 1);
  std::vector<std::vector<token>> written = {prompt};
  std::vector<index> parents = {0};
  std::vector<token> ids = {begin};
  for (index n = 0; n < 14; ++n) {
    const Rows<const float> logits = search.step(parents, ids);
    std::vector<std::vector<token>> next;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      next.push_back(written[static_cast<std::size_t>(parents[i])]);
      next.back().push_back(ids[i]);
      LanguageModelDecoder alone(context, *loaded.model);
      const auto expected = alone.append({next[i].data(), static_cast<index>(next[i].size())});
      EXPECT_EQ(std::memcmp(logits[static_cast<index>(i)], expected.data,
                            sizeof(float) * static_cast<std::size_t>(expected.size)),
                0)
          << n << " " << i;
    }
    written = std::move(next);
    const auto size = static_cast<index>(written.size());
    parents = n % 3 == 0 ? std::vector<index>{size - 1, 0, size - 1} : std::vector<index>{0, 0};
    ids.clear();
    for (std::size_t i = 0; i < parents.size(); ++i) {
      ids.push_back(static_cast<token>(kFirstLearnedToken + (n + static_cast<index>(i)) % 5));
    }
  }
}

TEST(SearchText, FindsTextsAsProbableAsGreedyOnes) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = model_of(folder, line_settings(folder));
  const SamplingOptions options{.max_tokens = 30};
  const FoundText one = search_text(Context(1), loaded, "", options,
                                    {.beam = 1, .length_penalty = 0}),
                  five = search_text(Context(3), loaded, "", options,
                                     {.beam = 5, .length_penalty = 0});
  EXPECT_GE(five.log_probability, one.log_probability);
  EXPECT_EQ(five.score, five.log_probability);
  // Its log probability is that of the text, read again, with its end.
  std::vector<token> tokens = prompt_tokens(loaded, "");
  double sum = 0;
  std::vector<token> text = loaded.tokenizer->encode(five.text, "text");
  text.push_back(loaded.tokenizer->special().end);
  for (const token id : text) {
    sum += next_of(loaded, tokens)[static_cast<std::size_t>(id)];
    tokens.push_back(id);
  }
  EXPECT_NEAR(sum, five.log_probability, 1e-4);
  EXPECT_EQ(five.tokens + 1, std::ssize(text));
}

TEST(SearchText, WithoutLinesTextsAreAsLongAsAsked) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = model_of(folder, tiny_settings(folder));
  const FoundText found = search_text(Context(1), loaded, "the", {.max_tokens = 20}, {.beam = 3});
  EXPECT_EQ(found.tokens, 20);
  EXPECT_EQ(found.text.size(), 20u);
  EXPECT_NEAR(found.score, found.log_probability / std::pow(25.0 / 6, 0.6), 1e-9);
  EXPECT_THROWS(search_text(Context(1), loaded, "the", {}, {.beam = 0}), kOptionValue, "--beam");
}

}  // namespace
}  // namespace fovea
