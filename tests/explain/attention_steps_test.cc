// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/attention_steps.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(AttentionSteps, EmbeddingsAreThoseOfTheCodePoint) {
  // 0x4f60 = 20320 = 19 * 1069 + 9 = 23 * 883 + 11 = 29 * 700 + 20 = 31 * 655 + 15
  EXPECT_THAT(step_embedding(U'\u4f60'), ElementsAre(0, 0, .6, 0));
  EXPECT_THAT(step_embedding(U'\0'), ElementsAre(-.9, -1.1, -1.4, -1.5));
}

// The whole of E11 by plain loops.
TEST(AttentionSteps, AreTheFormula) {
  const AttentionSteps steps = attention_steps(Context(2), "\u662f\u4f60", "\u4f60\u4eba!");
  EXPECT_THAT(steps.queries, ElementsAre("\u662f", "\u4f60"));
  EXPECT_THAT(steps.keys, ElementsAre("\u4f60", "\u4eba", "!"));
  for (std::size_t i = 0; i < 2; ++i) {
    double total = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      double dot = 0;
      for (std::size_t c = 0; c < 4; ++c) dot += steps.q[i * 4 + c] * steps.k[j * 4 + c];
      EXPECT_NEAR(steps.scores[i * 3 + j], dot, 1e-12);
      EXPECT_NEAR(steps.scaled[i * 3 + j], dot / 2, 1e-12);
      total += std::exp(dot / 2);
    }
    for (std::size_t c = 0; c < 4; ++c) {
      double mean = 0;
      for (std::size_t j = 0; j < 3; ++j) {
        const double weight = std::exp(steps.scaled[i * 3 + j]) / total;
        EXPECT_NEAR(steps.weights[i * 3 + j], weight, 1e-12);
        mean += weight * steps.k[j * 4 + c];
      }
      EXPECT_NEAR(steps.output[i * 4 + c], mean, 1e-12);
    }
  }
}

TEST(AttentionSteps, AreWrittenInBlocksThatFit) {
  const std::string text = steps_text(attention_steps(Context(1), "ab", "0123456789 \u202e"), 80);
  for (const char* part : {"softmax(Q K^T / sqrt(d)) V", "1. Embeddings", "2. Scores", "[2, 12]",
                           "3. Scaled", "4. Weights", "5. Output", "' '", "\\u{202E}"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(text.find("\u202e"), std::string::npos);
}

TEST(AttentionSteps, AreWrittenInChinese) {
  const std::string text =
      steps_text(attention_steps(Context(1), "是", "你人"), 80, PageLanguage::kChinese);
  for (const char* part :
       {"缩放点积注意力", "1. 嵌入", "2. 分数", "3. 缩放后", "4. 权重", "5. 输出"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  for (const char* word : {"Queries", "Weights", "Output"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  }
}

TEST(AttentionSteps, CharactersThatTakeNoRoomAreNamed) {
  const AttentionSteps steps = attention_steps(Context(1), "\u200d", "a\u200c\ufe0f\u3000\u200b");
  EXPECT_THAT(steps.queries, ElementsAre("[U+200D]"));
  EXPECT_THAT(steps.keys, ElementsAre("a", "\\u{200C}", "[U+FE0F]", "[U+3000]", "\\u{200B}"));
}

TEST(AttentionSteps, RefuseTextsThatCannotBeShown) {
  EXPECT_THROWS(attention_steps(Context(1), "", "a"), kInputTooSmall, "--q: the text is empty");
  EXPECT_THROWS(attention_steps(Context(1), "a", ""), kInputTooSmall, "--kv: the text is empty");
  EXPECT_THROWS(attention_steps(Context(1), "a", "\xff"), kEncoding, "--kv:1:1");
  EXPECT_THROWS(attention_steps(Context(1), std::string(65, 'x'), "a"), kOptionValue,
                "--q: 65 characters; expected at most 64");
}

}  // namespace
}  // namespace fovea
