// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/generate.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "fovea/text/utf8.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

std::string text_of(const LoadedLanguageModel& loaded, std::string_view prompt,
                    const SamplingOptions& options, int threads = 1) {
  std::string all;
  generate_text(Context(threads), loaded, prompt, options, [&](std::string_view part) {
    EXPECT_FALSE(find_invalid_utf8(part));
    all += part;
    return true;
  });
  return all;
}

TEST(Generate, IsAFunctionOfPromptAndSeed) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, tiny_settings(folder)));
  const SamplingOptions options{.max_tokens = 60, .seed = 4};
  const std::string once = text_of(loaded, "the", options);
  EXPECT_EQ(text_of(loaded, "the", options, 3), once);
  EXPECT_NE(text_of(loaded, "the", {.max_tokens = 60, .seed = 5}), once);
  EXPECT_NE(text_of(loaded, "no", options), once);
}

// Untrained, it writes any bytes at all: what comes out is still text, and as long as asked.
TEST(Generate, WritesWholeCharactersPastTheBlock) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.tokenizer = "byte";
  settings.recipe.stop_after = "1u";
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  EXPECT_GE(text_of(loaded, "", {.max_tokens = 100, .temperature = 3}).size(), 100u);
}

TEST(Generate, ALineEndsWhereTheModelEndsIt) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.data = "lines";
  settings.model.block = 32;
  settings.recipe.lr = 1e-2;
  settings.recipe.stop_after = "300u";
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  const std::string line = text_of(loaded, "the cat", {.max_tokens = 500, .greedy = true});
  EXPECT_EQ(line, " sees the moon");
}

// The likeliest token each time, as the definitions have it: the whole window encoded anew, tokens
// seen in it divided (negative ones multiplied) by the penalty.
std::string greedy_by_definition(const LoadedLanguageModel& loaded, std::string_view prompt,
                                 index count, float penalty) {
  std::vector<token> tokens = loaded.tokenizer->encode(prompt, "prompt");
  const std::size_t given = tokens.size();
  const index block = loaded.settings.model.block;
  for (index n = 0; n < count; ++n) {
    const auto size = static_cast<index>(tokens.size());
    LanguageModelDecoder decoder(Context(1), *loaded.model);
    std::vector<float> logits = to_vector(decoder.append({tokens.data(), size}));
    const std::set<token> seen(tokens.begin() + std::max<index>(0, size - block), tokens.end());
    for (const token id : seen) {
      float& x = logits[static_cast<std::size_t>(id)];
      x = x > 0 ? x / penalty : x * penalty;
    }
    const auto first = logits.begin() + kFirstLearnedToken;  // after special tokens and bytes
    tokens.push_back(static_cast<token>(std::max_element(first, logits.end()) - logits.begin()));
  }
  std::string text;
  StreamDecoder decoder(*loaded.tokenizer);
  for (std::size_t i = given; i < tokens.size(); ++i) text += decoder.push(tokens[i]);
  return text + std::string(decoder.finish());
}

TEST(Generate, PenaltyIsOfTheTokensInTheWindow) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.lr = 1e-2;
  settings.recipe.stop_after = "100u";
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  const std::string plain = text_of(loaded, "the", {.max_tokens = 40, .greedy = true});
  EXPECT_EQ(plain, greedy_by_definition(loaded, "the", 40, 1));
  for (const double penalty : {1.5, 4.0}) {
    const std::string text =
        text_of(loaded, "the", {.max_tokens = 40, .repetition_penalty = penalty, .greedy = true});
    EXPECT_EQ(text, greedy_by_definition(loaded, "the", 40, static_cast<float>(penalty)));
    EXPECT_NE(text, plain);
  }
}

// However likely the model thinks them.
TEST(Generate, SpecialTokensAreNotWritten) {
  for (const std::string data : {"blocks", "lines"}) {
    const TestFolder folder;
    LanguageModelSettings settings = tiny_settings(folder);
    settings.text.data = data;
    settings.model.bias = true;
    settings.model.tie = false;
    const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
    const auto text_if = [&](float pad, float begin, float end) {
      Parameter& bias = *loaded.model->parameters().back();
      EXPECT_EQ(bias.name, "output.bias");
      bias.value.vec<float>()[kPadToken] = pad;
      bias.value.vec<float>()[kBeginToken] = begin;
      bias.value.vec<float>()[kEndToken] = end;
      ++bias.version;
      return text_of(loaded, "the", {.max_tokens = 30, .greedy = true});
    };
    const std::string text = text_if(-100, -100, -100);
    EXPECT_GE(text.size(), 30u);
    EXPECT_EQ(text_if(100, -100, -100), text) << data;
    EXPECT_EQ(text_if(-100, 100, -100), text) << data;
    EXPECT_EQ(text_if(-100, -100, 100), data == "lines" ? "" : text);
  }
}

// The bytes of a character model spell what its text never had: none of them was ever a target.
TEST(Generate, ACharacterModelWritesCharactersOfItsText) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "1u";
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  const std::string text = text_of(loaded, "\u5E8A", {.max_tokens = 300, .temperature = 3});
  EXPECT_EQ(text.size(), 300u);
  EXPECT_EQ(text.find_first_not_of(tiny_text()), std::string::npos) << text;
}

TEST(Generate, SaysHowManyTokensItChose) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, tiny_settings(folder)));
  const auto write = [](std::string_view) { return true; };
  EXPECT_EQ(generate_text(Context(1), loaded, "the", {.max_tokens = 7}, write), 7);
}

TEST(Generate, EndsWhereTheCallerStopsIt) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, tiny_settings(folder)));
  int calls = 0;
  const auto write = [&](std::string_view) { return ++calls < 3; };
  EXPECT_EQ(generate_text(Context(1), loaded, "the", {.max_tokens = 500}, write), 3);
  EXPECT_EQ(calls, 3);
}

TEST(Generate, RefusesBadOptionsAndPrompts) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, tiny_settings(folder)));
  EXPECT_THROWS(text_of(loaded, "the", {.top_p = 0}), kOptionValue, "--top-p");
  EXPECT_THROWS(text_of(loaded, "\xff", {}), kEncoding, "prompt");
}

LanguageModelSettings word_settings(const TestFolder& folder) {
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.tokenizer = "word";
  settings.text.data = "lines";
  settings.recipe.lr = 1e-2;
  settings.recipe.stop_after = "200u";
  return settings;
}

TEST(GenerateWords, ALineOfWordsEndsWhereTheModelEndsIt) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, word_settings(folder)));
  const SamplingOptions options{.max_tokens = 100, .greedy = true};
  EXPECT_EQ(text_of(loaded, "the cat", options), " sees the moon");
  EXPECT_EQ(text_of(loaded, "the cat ", options), "sees the moon");
  EXPECT_FALSE(text_of(loaded, "", options).starts_with(" "));
  EXPECT_EQ(unknown_words(loaded, "the fox and the cat"), 2);
}

// Without marks a line has no beginning but its first word, and does not end.
TEST(GenerateWords, WithoutMarksAPromptNeedsAWord) {
  const TestFolder folder;
  LanguageModelSettings settings = word_settings(folder);
  settings.text.marks = false;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  std::vector<std::string> words;
  const SamplingOptions options{.max_tokens = 20, .greedy = true};
  EXPECT_EQ(
      generate_text(Context(1), loaded, "the cat", options, [](std::string_view) { return true; }),
      20);
  EXPECT_TRUE(text_of(loaded, "the cat", options).starts_with(" sees the moon"));
  for (const std::string_view prompt : {"", " \n"}) {
    EXPECT_THROWS(text_of(loaded, prompt, options), kInputTooSmall, "the prompt holds no token");
    EXPECT_THROWS(require_generation_memory(Context(1), loaded, prompt, options), kInputTooSmall,
                  "the prompt holds no token");
  }
}

// Neither what lines never have, nor an unknown word where training knew all.
TEST(GenerateWords, WhatWasNeverATargetIsNotWritten) {
  for (const std::string data : {"blocks", "lines"}) {
    const TestFolder folder;
    LanguageModelSettings settings = word_settings(folder);
    settings.text.data = data;
    settings.recipe.stop_after = "1u";
    const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
    index tokens = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::string text =
          text_of(loaded, "the", {.max_tokens = 50, .temperature = 9, .seed = seed});
      EXPECT_EQ(text.find('<'), std::string::npos) << text;
      tokens += std::count(text.begin(), text.end(), ' ');
    }
    EXPECT_GT(tokens, 50);
    if (data == "blocks") {
      EXPECT_EQ(tokens, 1000);
    }
  }
}

// A training text with unknown words has taught the model to write them.
TEST(GenerateWords, UnknownWordsAreWrittenAsSuch) {
  const TestFolder folder;
  LanguageModelSettings settings = word_settings(folder);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the word x" + std::to_string(i) + " ends\n";
  std::ofstream(folder / "text.txt") << text;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  EXPECT_EQ(text_of(loaded, "the", {.greedy = true}), " word <unk> ends");
}

}  // namespace
}  // namespace fovea
