// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/evaluate.h"

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

// Characters that the model never saw are spelled in bytes: more tokens, but the same bytes.
TEST_F(EvaluateTest, BitsAreOfBytesWhateverTheTokens) {
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

}  // namespace
}  // namespace fovea
