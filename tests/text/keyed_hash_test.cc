// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/keyed_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fovea/text/vocabulary.h"
#include "fovea/text/words.h"
#include "tests/support/time_taken.h"
#include "tests/support/words_of_one_hash.h"

namespace fovea {
namespace {

constexpr std::size_t kWords = 5000;

std::string lines_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + '\n';
  return text;
}

TEST(KeyedHash, IsOneForEachKeyOfAProcess) {
  EXPECT_EQ(keyed_hash("fox"), keyed_hash(std::string("fox")));
  EXPECT_EQ(KeyedHash()("fox"), keyed_hash("fox"));
  std::set<std::uint64_t> hashes;
  for (std::size_t size = 0; size < 1000; ++size) hashes.insert(keyed_hash(std::string(size, 'a')));
  EXPECT_EQ(hashes.size(), 1000u);
  EXPECT_EQ(KeyedHash()(U"ab"), KeyedHash()(std::u32string(U"ab")));
  EXPECT_NE(KeyedHash()(U"ab"), KeyedHash()(U"ba"));
}

TEST(KeyedHash, WordsThatWereChosenToMeetDoNot) {
  const std::vector<std::string> words = words_of_one_hash(100);
#if defined(__GLIBCXX__)
  for (const std::string& word : words)
    EXPECT_EQ(std::hash<std::string>()(word), std::hash<std::string>()(words[0]));
#endif
  std::set<std::uint64_t> hashes;
  for (const std::string& word : words) hashes.insert(keyed_hash(word));
  EXPECT_EQ(hashes.size(), words.size());
}

// With std::hash, the chosen words take the square of their number: a hundred times as long.
TEST(KeyedHash, ChosenWordsTakeNoLongerThanOthers) {
  const std::string chosen = lines_of(words_of_one_hash(kWords));
  const std::string ordinary = lines_of(ordinary_words(kWords));
  const auto count = [](const std::string& text) {
    EXPECT_EQ(distinct_words(text, "t", LetterCase::kKept).size(), kWords);
  };
  EXPECT_LT(seconds_of([&] { count(chosen); }), 30 * seconds_of([&] { count(ordinary); }));
  const auto list = [](const std::string& text) {
    EXPECT_EQ(words_of_list("<pad>\n<unk>\n" + text, "t", false).size(), kWords);
  };
  EXPECT_LT(seconds_of([&] { list(chosen); }), 30 * seconds_of([&] { list(ordinary); }));
}

}  // namespace
}  // namespace fovea
