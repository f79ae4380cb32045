// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "experiments/translated_texts.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Lines = std::vector<std::string>;

TEST(WordOrder, CountsPairsOfWordsThatBothHave) {
  EXPECT_EQ(word_order(Lines{"a b c"}, Lines{"a b c"}), 1);
  EXPECT_EQ(word_order(Lines{"c b a"}, Lines{"a b c"}), 0);
  EXPECT_NEAR(word_order(Lines{"b a c x"}, Lines{"a b c y"}), 2.0 / 3, 1e-12);
  EXPECT_NEAR(word_order(Lines{"a b", "b a"}, Lines{"a b", "a b"}), 0.5, 1e-12);
}

TEST(WordOrder, LeavesOutWordsThatStandTwice) {
  EXPECT_EQ(word_order(Lines{"b a b c"}, Lines{"a b c"}), 1);  // a and c
  EXPECT_EQ(word_order(Lines{"b a c"}, Lines{"a b c b"}), 1);
}

TEST(WordOrder, OfNothingSharedIsOne) {
  EXPECT_EQ(word_order(Lines{"a b", ""}, Lines{"c d", "x"}), 1);
  EXPECT_THROWS(word_order(Lines{"a"}, Lines{}), kShape, "1 translations and 0 references");
}

}  // namespace
}  // namespace fovea
