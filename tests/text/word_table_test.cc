// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/word_table.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "fovea/base/random.h"
#include "tests/support/throws.h"

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

}  // namespace
}  // namespace fovea
