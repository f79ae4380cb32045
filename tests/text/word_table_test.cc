// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/text/vocabulary.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"
#include "tests/support/words_of_one_hash.h"

namespace fovea {
namespace {

TEST(WordTable, FindsWhatWasAdded) {
  WordTable table(3);
  EXPECT_TRUE(table.add("fox", 7));
  EXPECT_TRUE(table.add("a", 8));
  EXPECT_TRUE(table.add("a word of many bytes", 9));
  EXPECT_EQ(table.find("fox"), 7);
  EXPECT_EQ(table.find("a"), 8);
  EXPECT_EQ(table.find("a word of many bytes"), 9);
  EXPECT_EQ(table.find("foxes"), kNoToken);
  EXPECT_EQ(table.find("a word of many bytez"), kNoToken);
  EXPECT_EQ(table.find(""), kNoToken);
}

TEST(WordTable, TakesEachWordOnce) {
  WordTable table(2);
  EXPECT_TRUE(table.add("fox", 7));
  EXPECT_FALSE(table.add("fox", 8));
  EXPECT_EQ(table.find("fox"), 7);
}

TEST(WordTable, EmptyTableHasNothing) { EXPECT_EQ(WordTable(0).find("fox"), kNoToken); }

TEST(WordTable, RefusesWhatItHasNoRoomFor) {
  WordTable table(1);
  EXPECT_THROWS(table.add("", 1), kInternal, "an empty word");
  table.add("a", 1);
  table.add("b", 2);
  EXPECT_THROWS(table.add("c", 3), kInternal, "more than there is room for");
}

// Words of few letters and of every length, many of which begin or end alike, and bytes of 0.
TEST(WordTable, AgreesWithAMapOfStrings) {
  constexpr int kWords = 20000;
  Random random(1, RandomUse::kTest);
  const auto drawn = [&] {
    std::string word(1 + random.next_u32() % 20, 'a');
    for (char& c : word) c = "ab\0"[random.next_u32() % 3];
    return word;
  };
  std::vector<std::string> words;
  for (int n = 0; n < kWords; ++n) words.push_back(drawn());
  WordTable table(words.size());
  std::unordered_map<std::string, token> expected;
  for (token id = 0; id < kWords; ++id) {
    const std::string& word = words[static_cast<std::size_t>(id)];
    EXPECT_EQ(table.add(word, id), expected.emplace(word, id).second);
  }
  for (const auto& [word, id] : expected) ASSERT_EQ(table.find(word), id);
  for (int n = 0; n < kWords; ++n) {
    const std::string word = drawn();
    const auto found = expected.find(word);
    ASSERT_EQ(table.find(word), found == expected.end() ? kNoToken : found->second);
  }
}

// Words of eight bytes that had the same place by the hash that this table had once: a product with
// a known factor, which can be divided by.
TEST(WordTable, WordsThatWereChosenToMeetDoNot) {
  constexpr std::uint64_t kInverse = 0xF1DE83E19937733D;
  static_assert(kInverse * 0x9E3779B97F4A7C15u == 1);
  constexpr std::size_t kWords = 30'000;
  const auto before_mix = [](std::uint64_t hash) { return (hash ^ hash >> 32) * kInverse; };
  std::vector<std::string> chosen;
  for (std::uint64_t n = 1; n <= kWords; ++n) {
    const std::uint64_t start = before_mix(before_mix(n << 32)) ^ 8;
    chosen.emplace_back(8, '\0');
    std::memcpy(chosen.back().data(), &start, 8);
  }
  const auto fill = [](const std::vector<std::string>& words) {
    WordTable table(words.size());
    for (std::size_t n = 0; n < words.size(); ++n) {
      EXPECT_TRUE(table.add(words[n], static_cast<token>(n)));
    }
    EXPECT_EQ(table.find(words.back()), static_cast<token>(words.size() - 1));
  };
  const std::vector<std::string> ordinary = ordinary_words(kWords);
  EXPECT_LT(seconds_of([&] { fill(chosen); }), 0.02 + 30 * seconds_of([&] { fill(ordinary); }));
}

}  // namespace
}  // namespace fovea
