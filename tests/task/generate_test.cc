// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/generate.h"

#include <gmock/gmock.h>

#include "fovea/text/utf8.h"
#include "tests/support/throws.h"
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

TEST(Generate, StopsWhenNobodyListens) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, tiny_settings(folder)));
  int parts = 0;
  generate_text(Context(1), loaded, "the", {.max_tokens = 50},
                [&](std::string_view) { return ++parts < 3; });
  EXPECT_EQ(parts, 3);
}

TEST(Generate, RefusesBadOptionsAndPrompts) {
  const TestFolder folder;
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, tiny_settings(folder)));
  EXPECT_THROWS(text_of(loaded, "the", {.top_p = 0}), kOptionValue, "--top-p");
  EXPECT_THROWS(text_of(loaded, "\xff", {}), kEncoding, "prompt");
}

}  // namespace
}  // namespace fovea
