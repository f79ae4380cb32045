// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/characters.h"

#include <gmock/gmock.h>

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(Characters, AreThoseOfTheTextWithoutWhiteSpace) {
  EXPECT_THAT(characters_of(" 我a\u3000é\t"), ElementsAre("我", "a", "é"));
  EXPECT_TRUE(characters_of("").empty());
}

TEST(Characters, SayWhereInAWordTheyAre) {
  TaggedSentence words{
      .words = {"我", "喜欢", "计算机学"}, .tags = {}, .lines = {3, 3, 4}, .source = {}};
  const TaggedSentence found = to_characters(words);
  EXPECT_THAT(found.words, ElementsAre("我", "喜", "欢", "计", "算", "机", "学"));
  EXPECT_THAT(found.tags, ElementsAre(ElementsAre("S", "B", "E", "B", "M", "M", "E")));
  EXPECT_THAT(found.lines, ElementsAre(3, 3, 3, 4, 4, 4, 4));
  words.tags = {{"PRON", "VERB", "NOUN"}};
  EXPECT_THAT(to_characters(words).tags,
              ElementsAre(ElementsAre("S-PRON", "B-VERB", "E-VERB", "B-NOUN", "M-NOUN", "M-NOUN",
                                      "E-NOUN")));
}

TEST(Characters, OfAWordWithWhiteSpaceAreItsOthers) {
  const TaggedSentence found =
      to_characters({.words = {"a\u00a0b", "\u00a0"}, .tags = {}, .lines = {1, 2}, .source = {}});
  EXPECT_THAT(found.tags, ElementsAre(ElementsAre("B", "E")));
}

}  // namespace
}  // namespace fovea
