// SPDX-License-Identifier: Apache-2.0
// Expected values are those of Python 3.11. The lower case of every word of the golden sentences is
// compared through TER (tests/metrics/translation_test.cc).
#include "fovea/text/python_text.h"

#include <gmock/gmock.h>

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PythonText, SplitsAtUnicodeSpaceAndAtSeparators) {
  EXPECT_THAT(python_words(" a\tb\xC2\xA0"
                           "c\x1C"
                           "d\xE3\x80\x80  e\n"),
              ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(python_words("a\xE2\x80\x8B"
                           "b"),
              ElementsAre("a\xE2\x80\x8B"
                          "b"));  // a zero-width space is none
  EXPECT_THAT(python_words(" \x1F\x85"), testing::SizeIs(1));
  EXPECT_THAT(python_words(""), IsEmpty());
  EXPECT_EQ(joined(python_words("  a   b ")), "a b");
}

TEST(PythonText, Strips) {
  EXPECT_EQ(strip_end(" a b \x1E\n"), " a b");
  EXPECT_EQ(strip_both(" a b \x1E\n"), "a b");
  EXPECT_EQ(strip_end(" \t"), "");
  EXPECT_EQ(strip_both(""), "");
}

TEST(PythonText, LowersSigmaByItsPlace) {
  EXPECT_EQ(python_lower("ABC Ü"), "abc ü");
  EXPECT_EQ(python_lower("ΟΔΟΣ"), "οδος");
  EXPECT_EQ(python_lower("ΣΟΦΟΣ."), "σοφος.");
  EXPECT_EQ(python_lower("ΟΣ.Α"), "οσ.α");  // a point does not end the word
  EXPECT_EQ(python_lower("Σ"), "σ");
  EXPECT_EQ(python_lower("ΑΣ\xCC\x81 Β"), "ας\xCC\x81 β");  // nor does an accent begin another
  EXPECT_EQ(python_lower("İ"), "i\xCC\x87");
  EXPECT_EQ(python_lower("ẞ"), "ß");
}

TEST(PythonText, CharactersInAreScalarValues) {
  EXPECT_EQ(characters_in("aé月🙂"), U"aé月🙂");
  EXPECT_EQ(characters_in(""), U"");
}

}  // namespace
}  // namespace fovea
