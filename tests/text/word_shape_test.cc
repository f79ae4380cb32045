// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "fovea/base/random.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {
namespace {

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
