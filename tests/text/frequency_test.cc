// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::string_view word = take_word(text);
    if (word.empty()) return words;
    words.emplace_back(word);
  }
}

TEST(TakeWord, TakesWhatStandsBetweenWhiteSpace) {
  EXPECT_THAT(words_of("the little prince"), ElementsAre("the", "little", "prince"));
  EXPECT_THAT(words_of("  the\t\r\n\v\flittle \n"), ElementsAre("the", "little"));
  EXPECT_THAT(words_of("a\u00A0b\u3000c\u2028d\u0085e\u1680f\u202Fg"),
              ElementsAre("a", "b", "c", "d", "e", "f", "g"));
  EXPECT_THAT(words_of("a\u200Bb \uFEFFc \u001Cd"), ElementsAre("a\u200Bb", "\uFEFFc", "\u001Cd"));
  EXPECT_THAT(words_of(""), IsEmpty());
  EXPECT_THAT(words_of(" \n\u2003"), IsEmpty());
  EXPECT_THAT(words_of(std::string_view("a\0b c", 5)), ElementsAre(std::string("a\0b", 3), "c"));
  EXPECT_EQ(count_words("  the\u3000fox  "), 2);
  EXPECT_EQ(count_words(" \n"), 0);
}

// Every character alone between two letters, by the plain definition.
TEST(TakeWord, KnowsWhiteSpaceOfAllCharacters) {
  index spaces = 0;
  for (char32_t c = 0; c <= kLastCodePoint; ++c) {
    if (!is_scalar_value(c)) continue;
    std::string text = "a";
    append_utf8(text, c);
    text += 'b';
    ASSERT_EQ(count_words(text), is_white_space(c) ? 2 : 1) << static_cast<std::uint32_t>(c);
    spaces += is_white_space(c) ? 1 : 0;
  }
  EXPECT_EQ(spaces, 25);  // Unicode 15, PropList.txt
}

TEST(DistinctWords, AreInTheOrderOfTheirFirstOccurrence) {
  EXPECT_THAT(distinct_words("b a b\nc a b", "t", LetterCase::kKept),
              ElementsAre(CountedWord{"b", 3}, CountedWord{"a", 2}, CountedWord{"c", 1}));
  EXPECT_THAT(distinct_words("B \u00C9a b \u00E9A", "t", LetterCase::kLower),
              ElementsAre(CountedWord{"b", 2}, CountedWord{"\u00E9a", 2}));
  EXPECT_THAT(distinct_words(" ", "t", LetterCase::kKept), IsEmpty());
  EXPECT_THROWS(distinct_words("a\n\xFF", "book.txt", LetterCase::kKept), kEncoding,
                "book.txt:2:1: invalid UTF-8");
}

TEST(DistinctWords, AreThoseOfAMap) {
  Random random(5, RandomUse::kTest);
  std::string text;
  std::map<std::string, index> expected;
  for (int i = 0; i < 200000; ++i) {
    const std::string word = "w" + std::to_string(random.below(1 + random.below(90000)));
    ++expected[word];
    text += word + (random.below(9) == 0 ? "\n" : " ");
  }
  std::map<std::string, index> found;
  for (const auto& [word, count] : distinct_words(text, "t", LetterCase::kKept)) {
    EXPECT_TRUE(found.emplace(word, count).second) << word;
  }
  EXPECT_GT(found.size(), 50000u);
  EXPECT_EQ(found, expected);
}

// Spec T7: by descending frequency, ties in the order of their first occurrence.
TEST(FrequentWords, AreOrderedByCountAndThenAsTheyCame) {
  const std::vector<CountedWord> words = {{"z", 1}, {"b", 2}, {"y", 3}, {"a", 2}, {"x", 3}};
  EXPECT_THAT(frequent_words(words, 1),
              ElementsAre(CountedWord{"y", 3}, CountedWord{"x", 3}, CountedWord{"b", 2},
                          CountedWord{"a", 2}, CountedWord{"z", 1}));
  EXPECT_EQ(frequent_words(words, 2).size(), 4u);
  EXPECT_THAT(frequent_words(words, 3), ElementsAre(CountedWord{"y", 3}, CountedWord{"x", 3}));
  EXPECT_THAT(frequent_words(words, 4), IsEmpty());
}

TEST(CharactersByFrequency, CanBeThoseInLowerCase) {
  EXPECT_THAT(characters_by_frequency("aAbA", "t"), ElementsAre(U'A', U'a', U'b'));
  EXPECT_THAT(characters_by_frequency("aAbA", "t", LetterCase::kLower), ElementsAre(U'a', U'b'));
}

}  // namespace
}  // namespace fovea
