// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/token_text.h"

#include <gtest/gtest.h>

#include <string>

namespace fovea {
namespace {

TEST(TokenText, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(visible("cat"), "cat");
  EXPECT_EQ(visible(" a b "), "\u2423a b\u2423");
  EXPECT_EQ(visible("  "), "\u2423\u2423");
  EXPECT_EQ(visible(""), "\u2205");
  EXPECT_EQ(visible("\n\t\x7F"), "\u21B5\u21E5[U+007F]");
  EXPECT_EQ(visible("\u202Eabc\u2066"), "[U+202E]abc[U+2066]");
  EXPECT_EQ(visible("\xFFz"), "\uFFFDz");
  const std::string family = "\U0001F469\u200D\U0001F467";
  EXPECT_EQ(visible(family), family);
  EXPECT_EQ(visible("\u05E9\u05DC\u05D5\u05DD"), "\u05E9\u05DC\u05D5\u05DD");
}

TEST(TokenText, NothingIsBlank) {
  EXPECT_EQ(visible("\u3000"), "[U+3000]");
  EXPECT_EQ(visible(" \u00A0a\u00A0b\u3000 "), "\u2423[U+00A0]a\u00A0b[U+3000]\u2423");
  EXPECT_EQ(visible("\u200D"), "[U+200D]");
  EXPECT_EQ(visible("\u200D\uFE0F"), "[U+200D][U+FE0F]");
  EXPECT_EQ(visible("\u2800\u3164"), "[U+2800][U+3164]");
  EXPECT_EQ(visible("\u2764\uFE0F"), "\u2764\uFE0F");
  EXPECT_EQ(visible("\u0301\u0302"), "\u25CC\u0301\u0302");
  EXPECT_EQ(visible("e\u0301"), "e\u0301");
  EXPECT_TRUE(is_all_spaces("\u3000\u00A0 "));
  EXPECT_FALSE(is_all_spaces(" a"));
  EXPECT_FALSE(is_all_spaces("\xFF"));
}

}  // namespace
}  // namespace fovea
