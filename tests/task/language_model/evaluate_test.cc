// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/evaluate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "tests/support/throws.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

class EvaluateTest : public testing::Test {
 protected:
  TextScore score(std::string_view data, const std::string& text) {
    LanguageModelSettings settings = tiny_settings(folder);
    settings.text.data = data;
    const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
    std::ofstream(folder / "test.txt") << text;
    const std::vector<std::string> files = {(folder / "test.txt").string()};
    return evaluate_text(Context(2), loaded, files);
  }

  TestFolder folder;
};

TEST_F(EvaluateTest, CountsEachTokenButTheFirst) {
  const TextScore s = score("blocks", tiny_text());
  EXPECT_EQ(s.tokens, static_cast<index>(tiny_text().size()) - 1);
  EXPECT_DOUBLE_EQ(s.perplexity, std::exp(s.loss));
  EXPECT_NEAR(s.bits_per_byte, s.loss / std::numbers::ln2, 1e-9);
}

// A token that it knows is a character, and a character of Chinese three bytes.
TEST_F(EvaluateTest, BitsAreOfBytesWhereTokensAreCharacters) {
  const std::string poem = "床前明月光，疑是地上霜。举头望明月，低头思故乡。";
  LanguageModelSettings settings = tiny_settings(folder);
  std::ofstream learned(folder / "text.txt");
  for (int i = 0; i < 40; ++i) learned << poem << "by Li Bai\n";
  learned.close();
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  const auto score_of = [&](const std::string& text) {
    std::ofstream(folder / "test.txt") << text;
    return evaluate_text(Context(2), loaded, std::vector{(folder / "test.txt").string()});
  };
  const TextScore chinese = score_of(poem);
  EXPECT_EQ(chinese.tokens, 24 - 1);
  EXPECT_NEAR(chinese.bits_per_byte, chinese.loss / (3 * std::numbers::ln2), 1e-12);
  // The first character is not predicted, the other 23 and "by Li Bai" are.
  const TextScore mixed = score_of(poem + "by Li Bai");
  EXPECT_EQ(mixed.tokens, 23 + 9);
  EXPECT_NEAR(mixed.bits_per_byte, mixed.loss * 32 / ((23 * 3 + 9) * std::numbers::ln2), 1e-12);
}

// More tokens, but the same bytes.
TEST_F(EvaluateTest, CharactersNeverSeenAreSpelledInBytes) {
  const TextScore s = score("blocks", "the cat \xE5\xBA\x8A\xE5\x89\x8D sees");
  EXPECT_EQ(s.tokens, 8 + 6 + 5 - 1);
  EXPECT_NEAR(s.bits_per_byte, s.loss / std::numbers::ln2, 1e-9);
}

// The end of a line stands for its newline: all bytes are predicted.
TEST_F(EvaluateTest, LinesPredictTheirNewlines) {
  const TextScore s = score("lines", "the cat\na dog\n");
  EXPECT_EQ(s.tokens, 8 + 6);
  EXPECT_NEAR(s.bits_per_byte, s.loss / std::numbers::ln2, 1e-9);
}

TEST_F(EvaluateTest, NamesAFileThatIsTooSmall) {
  EXPECT_THROWS(score("blocks", "x"), kInputTooSmall, "test.txt");
}

class EvaluateWords : public EvaluateTest {
 protected:
  TextScore score_of(const std::string& text, bool lower = false) {
    LanguageModelSettings settings = tiny_settings(folder);
    settings.text.tokenizer = "word";
    settings.text.data = "lines";
    settings.text.lower = lower;
    const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
    std::ofstream(folder / "test.txt") << text;
    return evaluate_text(Context(2), loaded, std::vector{(folder / "test.txt").string()});
  }
};

TEST_F(EvaluateWords, CountsThoseThatAreUnknown) {
  const TextScore s = score_of("the cat sees a fox\nxyz\n");
  EXPECT_EQ(s.tokens, 5 + 1 + 2);
  EXPECT_EQ(s.unknown, 2);
  EXPECT_TRUE(std::isnan(s.bits_per_byte)) << "what unknown words are is not predicted";
}

TEST_F(EvaluateWords, BitsAreOfTheirBytesAndOfTheSpaceBeforeThem) {
  const std::string text = "the cat sees the moon\nno bird sings\n";
  const TextScore s = score_of(text);
  EXPECT_EQ(s.unknown, 0);
  EXPECT_EQ(s.tokens, 6 + 4);
  EXPECT_NEAR(s.bits_per_byte, s.loss * 10 / (std::numbers::ln2 * static_cast<double>(text.size())),
              1e-12);
  EXPECT_TRUE(std::isnan(score_of(text, true).bits_per_byte)) << "the case is not predicted";
}

}  // namespace
}  // namespace fovea
