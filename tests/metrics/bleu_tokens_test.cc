// SPDX-License-Identifier: Apache-2.0
// The tokens that sacreBLEU 2.6.0 makes of these; translation_golden_test.cc compares scores.
#include "fovea/metrics/bleu_tokens.h"

#include <gtest/gtest.h>

#include "fovea/text/python_text.h"

namespace fovea {
namespace {

std::string tokens(std::string_view text, BleuTokens kind) {
  return joined(python_words(bleu_tokens(text, kind)));
}

TEST(BleuTokens, PunctuationStandsAlone) {
  EXPECT_EQ(tokens("Hello, world! (It's 1,000.50-ish.)", BleuTokens::k13a),
            "Hello , world ! ( It's 1,000.50 - ish . )");
  EXPECT_EQ(tokens("well-known 3-4 a.b 1.", BleuTokens::k13a), "well-known 3 - 4 a . b 1 .");
  EXPECT_EQ(tokens("...", BleuTokens::k13a), ". . .");
  EXPECT_EQ(tokens("a/b|c{d}", BleuTokens::k13a), "a / b | c { d }");
}

TEST(BleuTokens, EntitiesAreReadOnceEach) {
  EXPECT_EQ(tokens("&quot;a&quot; &amp;lt; <skipped>b&gt;", BleuTokens::k13a), "\" a \" < b >");
  EXPECT_EQ(tokens("so-\ncalled", BleuTokens::k13a), "socalled");
  EXPECT_EQ(tokens("&quot;", BleuTokens::kZh), "& quot ;");  // zh leaves them
}

TEST(BleuTokens, ChineseCharactersStandAlone) {
  EXPECT_EQ(tokens("今天，很好。OK 2020", BleuTokens::kZh), "今 天 ， 很 好 。 OK 2020");
  EXPECT_EQ(tokens("“so”…", BleuTokens::kZh), "“ so ” …");  // U+2001 to U+2A6D count, too
  EXPECT_EQ(tokens("한국어é🙂", BleuTokens::kZh), "한국어é🙂");
  EXPECT_EQ(tokens("今天", BleuTokens::k13a), "今天");
}

TEST(BleuTokens, CharactersAndNothing) {
  EXPECT_EQ(tokens("ab 月🙂", BleuTokens::kChar), "a b 月 🙂");
  EXPECT_EQ(tokens("a,b  c.", BleuTokens::kNone), "a,b c.");
  for (const auto kind :
       {BleuTokens::k13a, BleuTokens::kZh, BleuTokens::kChar, BleuTokens::kNone}) {
    EXPECT_EQ(tokens("  \n", kind), "");
  }
}

}  // namespace
}  // namespace fovea
