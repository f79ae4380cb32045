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

// The plain computation: each target by itself, with the logits of its window.
TEST_F(EvaluateTest, StridedWindowsCountTheirLastTokensAlone) {
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.tokenizer = "char";
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  const std::string text = tiny_text().substr(0, 61);
  std::ofstream(folder / "test.txt") << text;
  const std::vector<std::string> files = {(folder / "test.txt").string()};
  const auto ids = loaded.tokenizer->encode(text);
  const index context = settings.model.block, tokens = std::ssize(ids);
  for (const index stride : {index{1}, index{5}, context - 1, context}) {
    double loss = 0;
    index counted = 0;
    for (index begin = 0; counted < tokens - 1; begin += stride) {
      const index end = std::min(begin + context, tokens - 1);
      const std::vector<token> window(ids.begin() + begin, ids.begin() + end);
      const std::vector<std::int32_t> offsets = {0, static_cast<std::int32_t>(window.size())};
      Tape tape(Context(1), TapeMode::kInference);
      const auto logits =
          loaded.model->logits(tape, {.ids = window, .offsets = offsets}).value<float>();
      for (; counted < end; ++counted) {
        const float* const row = logits[counted - begin];
        double sum = 0;
        for (index v = 0; v < logits.columns; ++v) sum += std::exp(double{row[v]});
        loss += std::log(sum) - double{row[ids[static_cast<std::size_t>(counted + 1)]]};
      }
    }
    const TextScore found = evaluate_text(Context(2), loaded, files, {.stride = stride});
    EXPECT_EQ(found.tokens, tokens - 1) << stride;
    EXPECT_NEAR(found.loss, loss / static_cast<double>(tokens - 1), 1e-5) << stride;
    EXPECT_NEAR(found.bits_per_byte, found.loss / std::numbers::ln2, 1e-9) << stride;
  }
  const TextScore apart = evaluate_text(Context(2), loaded, files);
  EXPECT_EQ(evaluate_text(Context(2), loaded, files, {.stride = context}).loss, apart.loss);
  EXPECT_NE(evaluate_text(Context(2), loaded, files, {.stride = 1}).loss, apart.loss);
  EXPECT_THROWS(evaluate_text(Context(1), loaded, files, {.stride = context + 1}), kOptionValue,
                "in 0 to 12");
}

TEST_F(EvaluateTest, ModelsOfLinesHaveNoStride) {
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.data = "lines";
  const LoadedLanguageModel loaded = load_language_model(tiny_model(folder, settings));
  const std::vector<std::string> files = {(folder / "text.txt").string()};
  EXPECT_THROWS(evaluate_text(Context(1), loaded, files, {.stride = 3}), kOptionValue, "lines");
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
