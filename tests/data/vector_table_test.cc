// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/data/word_vectors.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using enum VectorMatch;

TEST(VectorTable, TakesTheBestOfEachWord) {
  const std::vector<std::string> words = {"Paris", "paris", "", "x"};
  VectorTable table(words, 0);
  table.begin(2, "f");
  float next = 0;
  const auto fill = [&](std::span<float> row) {
    for (float& number : row) number = ++next;
  };
  table.take("PARIS", fill);
  table.take("paris", fill);
  table.take("", fill);
  table.take("paris", fill);
  EXPECT_EQ(table.repeated(), 1);
  const WordVectors found = table.take();
  EXPECT_THAT(found.match, ElementsAre(kLower, kExact, kNone, kNone));
  EXPECT_THAT(found.rows, ElementsAre(1, 2, 5, 6, 0, 0, 0, 0));
  EXPECT_EQ(found.count(kNone), 2);
}

TEST(VectorTable, KnowsItsWidth) {
  const std::vector<std::string> words = {"a"};
  VectorTable table(words, 3);
  EXPECT_THROWS(table.begin(2, "f"), kOptionValue,
                "f: its vectors have 2 numbers; the rows of words are to have 3");
  table.begin(3, "f");
  EXPECT_EQ(table.width(), 3);
}

// "paris", "Paris", "pAris": each is looked for once, not at each word of the file.
TEST(VectorTable, WordsThatDifferInCaseAloneTakeTimeOfTheirNumber) {
  constexpr int kLetters = 18;
  const auto in_case = [](index number) {
    std::string word(kLetters, 'a');
    for (int n = 0; n < kLetters; ++n) word[static_cast<std::size_t>(n)] -= (number >> n & 1) * 32;
    return word;
  };
  const auto other = [](index number) { return std::to_string(1'000'000 + number); };
  const auto take = [](auto&& word_of) {
    constexpr index kWords = 40'000;
    std::vector<std::string> words;
    for (index n = 0; n < kWords; ++n) words.push_back(word_of(n));
    VectorTable table(words, 0);
    table.begin(1, "f");
    for (index n = 0; n < kWords; ++n) table.take(word_of(2 * kWords + n), [](std::span<float>) {});
    return table.take().count(kLower);
  };
  EXPECT_EQ(take(in_case), 40'000);
  EXPECT_EQ(take(other), 0);
  EXPECT_LT(seconds_of([&] { take(in_case); }), 10 * seconds_of([&] { take(other); }));
}

}  // namespace
}  // namespace fovea
