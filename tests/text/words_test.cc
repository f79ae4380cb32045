// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/words.h"

#include <gtest/gtest.h>

#include <string>

#include "fovea/base/random.h"
#include "fovea/text/utf8.h"

namespace fovea {
namespace {

// A text as a model would write it that has learned such words.
std::string cut(std::string_view text) {
  std::string words;
  for (std::string_view word = take_word(text, WordSplit::kPunctuation); !word.empty();
       word = take_word(text, WordSplit::kPunctuation)) {
    words += (words.empty() ? "" : " ") + std::string(word);
  }
  return words;
}

TEST(Detokenized, TextComesBackAsItWas) {
  for (const std::string_view text :
       {"A man in a red T-shirt, 24, rides (fast) down the hill; he's happy!",
        "\"Stop!\" she said. \"It costs $3.50 or 10,000%: no?\"", "The dogs' owner sees it.",
        "He calls it 'a day' and/or night.", "Ein Mann sagt: \u201EGuten Tag\u201C, und geht.",
        "\u201CHello,\u201D he said\u2026", "L'homme n'a qu'un chien.",
        "\u00BFQu\u00E9 tal? \u00A1Bien!", "\u6211\u7231\u5317\u4EAC\uFF0C\u4F60\u5462\uFF1F",
        "4 + 4 = 8", "a \u2013 b", "", "."}) {
    EXPECT_EQ(detokenized(cut(text)), text) << cut(text);
  }
  EXPECT_EQ(cut("red T-shirt, 3.5."), "red T - shirt , 3 . 5 .");
}

// Where words alone do not tell, the line that was translated does.
TEST(Detokenized, TheSourceSaysWhereHyphensAndNumbersHaveBlanks) {
  struct Case {
    std::string_view source, text;
  };
  for (const auto& [source, text] : {
           Case{"a man - in blue", "ein Mann - in Blau"},
           {"a man \u2013 in a T-shirt", "ein Mann - im T-Shirt"},
           {"the T-shirt and/or the hat - red", "das T-Shirt und/oder der Hut - rot"},
           {"the T-shirt", "das T-Shirt mit Polo-Kragen"},
           {"rooms 1, 2", "Zimmer 1, 2"},
           {"1,000 of 10,000,000", "1.000 von 10.000.000"},
           {"it costs 3.5 dollars", "es kostet 3,5 Dollar"},
           {"at 10:30", "um 10.30"},
           {"numbers 11,25 and 1, 2", "Zahlen 11,25 und 1, 2"},
           {"some", "1,000 of 1, 2"},
       }) {
    EXPECT_EQ(detokenized(cut(text), source), text) << source;
  }
}

TEST(Truecased, SentencesBeginWithACapitalLetter) {
  EXPECT_EQ(truecased("a man rides. \"he falls.\" why? \u00E4h, 3.5 is it."),
            "A man rides. \"He falls.\" Why? \u00C4h, 3.5 is it.");
  EXPECT_EQ(truecased("\u6211\u4EEC"), "\u6211\u4EEC");
}

constexpr std::int32_t kSmall = 9, kCapital = 18, kCapitals = 27, kMixed = 36;

TEST(WordShape, SaysHowAWordIsWritten) {
  EXPECT_EQ(word_shape(""), 0);
  EXPECT_EQ(word_shape("word"), kSmall);
  EXPECT_EQ(word_shape("Émile"), kCapital);
  EXPECT_EQ(word_shape("I"), kCapital);
  EXPECT_EQ(word_shape("NATO"), kCapitals);
  EXPECT_EQ(word_shape("iPhone"), kMixed);
  EXPECT_EQ(word_shape("McX"), kMixed);
  EXPECT_EQ(word_shape("北京"), kSmall);
  EXPECT_EQ(word_shape("3.14"), 6);
  EXPECT_EQ(word_shape("-12,000"), 6);
  EXPECT_EQ(word_shape("B2B"), kCapitals + 3);
  EXPECT_EQ(word_shape("."), 1);
  EXPECT_EQ(word_shape("don't"), kSmall + 1);
  EXPECT_EQ(word_shape("@ada"), kSmall + 2);
  EXPECT_EQ(word_shape("#"), 1);
  EXPECT_EQ(word_shape("http://x.y"), kSmall + 2);
}

TEST(WordShape, IsOneOfItsNumber) {
  Random random(1, RandomUse::kTest);
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (index n = random.below(6); n > 0; --n) {
      append_utf8(word, static_cast<char32_t>(random.below(i % 2 == 0 ? 128 : 0x3000)));
    }
    EXPECT_GE(word_shape(word), 0);
    EXPECT_LT(word_shape(word), kWordShapes);
  }
}

}  // namespace
}  // namespace fovea
