// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/base/words.h"

namespace fovea {
namespace {

TEST(Printable, QuotesWhatCanBePrinted) { EXPECT_EQ(printable("h.0.wte"), "'h.0.wte'"); }

TEST(Printable, EscapesControlAndBidirectionalCharacters) {
  EXPECT_EQ(printable("a\x1b[31m\n"), "'a\\x1b[31m\\x0a'");
  EXPECT_EQ(printable("\u202e"), "'\\xe2\\x80\\xae'");
}

TEST(Printable, KeepsOtherScripts) {
  EXPECT_EQ(printable("中文, é, 😀"), "'中文, é, 😀'");
  EXPECT_EQ(printable("\u0085\u200b\u2067\ufeff"),
            "'\\xc2\\x85\\xe2\\x80\\x8b\\xe2\\x81\\xa7\\xef\\xbb\\xbf'");
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff\xe4\xb8"), "'\\xff\\xe4\\xb8'");
  EXPECT_EQ(printable("\xc0\xaf"), "'\\xc0\\xaf'") << "overlong";
  EXPECT_EQ(printable("\xe0\x80\xaf"), "'\\xe0\\x80\\xaf'") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "'\\xed\\xa0\\x80'") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "'\\xf4\\x90\\x80\\x80'") << "beyond the last";
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable(std::string(59, 'x') + "中"), "'" + std::string(59, 'x') + "...'");
}

TEST(Printable, CutsWhatIsLong) {
  EXPECT_EQ(printable(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(printable(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace fovea
