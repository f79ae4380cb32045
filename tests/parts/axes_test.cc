// SPDX-License-Identifier: Apache-2.0
#include "fovea/parts/axes.h"

#include <gmock/gmock.h>

namespace fovea {
namespace {

TEST(Axes, ReadAsAPersonWritesThem) { EXPECT_EQ(axes_text("B|1 H 2"), "[B or 1, H, 2]"); }

TEST(Axes, WordsSayASize) {
  const auto expect = [](const char* text, const char* letter, index size, bool or_one) {
    const AxisWord word = axis_word(text);
    EXPECT_EQ(word.letter, letter) << text;
    EXPECT_EQ(word.size(10), size) << text;
    EXPECT_EQ(word.or_one, or_one) << text;
  };
  expect("B", "B", 10, false);
  expect("Dv|1", "Dv", 10, true);
  expect("2D", "D", 20, false);
  expect("N+1", "N", 11, false);
  expect("2s+1", "s", 21, false);
  expect("2", "", 2, false);
}

TEST(Axes, ALetterIsASizeOfTheCallOrItsOwn) {
  constexpr AttentionSizes sizes{2, 5, 7, 4, 1, 6, 3};
  EXPECT_EQ(size_of_letter("S", sizes, 9), 7);
  EXPECT_EQ(size_of_letter("Dv", sizes, 9), 3);
  EXPECT_EQ(size_of_letter("buckets", sizes, 9), 9);
}

}  // namespace
}  // namespace fovea
