// SPDX-License-Identifier: Apache-2.0
#include "fovea/catalogue/entry.h"

#include <gmock/gmock.h>

#include <string>

#include "fovea/base/error.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::Optional;

std::optional<std::vector<std::string_view>> matched(std::string_view format,
                                                     std::string_view text) {
  static std::optional<FormatPieces> pieces;  // what is returned are views of the text alone
  pieces = pieces_of(format);
  EXPECT_TRUE(pieces) << format;
  return match_format(*pieces, text);
}

TEST(FormatPieces, AreLiteralsAndPlaces) {
  const std::optional<FormatPieces> pieces = pieces_of("{}: {:.3f} of {{{0}}}");
  ASSERT_TRUE(pieces);
  EXPECT_THAT(pieces->literals, ElementsAre("", ": ", " of {", "}"));
  ASSERT_EQ(pieces->places.size(), 3U);
  EXPECT_EQ(pieces->places[1].argument, 1U);
  EXPECT_TRUE(pieces->places[1].is_number);
  EXPECT_FALSE(pieces->places[0].is_number);
  EXPECT_EQ(pieces->places[2].argument, 0U);
}

TEST(FormatPieces, MayHoldAPlaceInAPlace) {
  const std::optional<FormatPieces> pieces = pieces_of("mean {:.{}g}, {}");
  ASSERT_TRUE(pieces);
  EXPECT_THAT(pieces->literals, ElementsAre("mean ", ", ", ""));
}

TEST(FormatPieces, OfATextWithLooseBracesAreNone) {
  EXPECT_FALSE(pieces_of("a { b"));
  EXPECT_FALSE(pieces_of("a } b"));
  EXPECT_FALSE(pieces_of("{query_offsets, key_offsets}"));
}

TEST(MatchFormat, FindsWhatWasPutIn) {
  EXPECT_THAT(matched("{} is not {}", "-1 is not at least 0"),
              Optional(ElementsAre("-1", "at least 0")));
  EXPECT_THAT(matched("update {}: loss {:.4f}{}", "update 5: loss 1.2500, best"),
              Optional(ElementsAre("5", "1.2500", ", best")));
  EXPECT_THAT(matched("{} run{}", "1 run"), Optional(ElementsAre("1", "")));
}

TEST(MatchFormat, LooksFurtherWhereANumberIsNone) {
  EXPECT_THAT(matched("{}: {:.1f} s", "a: b: 2.5 s"), Optional(ElementsAre("a: b", "2.5")));
}

TEST(MatchFormat, RefusesWhatWasNotMadeWithIt) {
  EXPECT_EQ(matched("{} is not {}", "-1 was not 0"), std::nullopt);
  EXPECT_EQ(matched("{:d} lines", "many lines"), std::nullopt);
  EXPECT_EQ(matched("a {} b", "a x b "), std::nullopt);
}

TEST(MatchFormat, PutsAWordIntoTheFirstOfTwoPlacesSideBySide) {
  EXPECT_THAT(matched("the scheme {}{}, got {}", "the scheme bio in column 2, got X"),
              Optional(ElementsAre("bio", " in column 2", "X")));
  EXPECT_THAT(matched("the scheme {}{}, got {}", "the scheme bio, got X"),
              Optional(ElementsAre("bio", "", "X")));
}

TEST(MatchFormat, KeepsToOneLine) {
  EXPECT_EQ(matched("{}: {} of {}", "a: 1 of 2\nb"), std::nullopt);
}

TEST(MatchFormat, EndsEarlyOnATextThatRepeatsItsLiterals) {
  const std::string text(20000, ' ');
  EXPECT_EQ(matched("{} {} {} {} {} {}!", text + "?"), std::nullopt);
}

TEST(ReadPo, HasTheEntriesWithATranslation) {
  const auto entries = read_po(
      "# a comment\nmsgid \"\"\nmsgstr \"\"\n\"Language: zh_CN\\n\"\n\n#: a.cc\nmsgid \"hint\"\n"
      "msgstr \"提示\"\n\nmsgid \"\"\n\"two\\n\"\n\"lines \\\"quoted\\\"\"\nmsgstr \"两行\"\n\n"
      "msgid \"open\"\nmsgstr \"\"\n\nmsgctxt \"word\"\nmsgid \"token\"\nmsgstr \"词元\"\n");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].english, "hint");
  EXPECT_EQ(entries[0].chinese, "提示");
  EXPECT_EQ(entries[1].english, "two\nlines \"quoted\"");
  EXPECT_FALSE(entries[1].is_word);
  EXPECT_EQ(entries[2].english, "token");
  EXPECT_TRUE(entries[2].is_word);
}

TEST(ReadPo, SaysWhereALineIsNone) {
  try {
    read_po("msgid \"a\"\nmsgstr b\n");
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("line 2"));
  }
  EXPECT_THROW(read_po("\"a\"\n"), Error);
}

}  // namespace
}  // namespace fovea
