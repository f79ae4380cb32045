// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "fovea/base/random.h"
#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {
namespace {

using Found = std::vector<std::pair<std::size_t, token>>;

Found prefixes(const PieceTrie& trie, std::string_view text) {
  Found found;
  trie.visit_prefixes(text, [&](std::size_t length, token id) { found.emplace_back(length, id); });
  return found;
}

TEST(PieceTrie, FindsThePiecesAtTheFront) {
  const PieceTrie trie({{"ab", 5}, {"a", 3}, {"abcd", 4}, {"b", 0}, {"月", 9}});
  EXPECT_EQ(prefixes(trie, "abc"), (Found{{1, 3}, {2, 5}}));
  EXPECT_EQ(prefixes(trie, "abcde"), (Found{{1, 3}, {2, 5}, {4, 4}}));
  EXPECT_EQ(prefixes(trie, "月月"), (Found{{3, 9}}));
  EXPECT_EQ(prefixes(trie, "c"), Found{});
  EXPECT_EQ(prefixes(trie, ""), Found{});
  EXPECT_EQ(trie.longest_prefix("abcd"), 4u);
  EXPECT_EQ(trie.longest_prefix("x"), 0u);
  EXPECT_EQ(PieceTrie().longest_prefix("x"), 0u);
}

TEST(PieceTrie, WalksOnFromAnyNode) {
  const PieceTrie trie({{"ab", 5}, {"abcd", 4}});
  const std::uint32_t ab = trie.walk(0, "ab");
  EXPECT_EQ(trie.id_at(ab), 5);
  EXPECT_EQ(trie.id_at(trie.walk(ab, "c")), kNoToken);
  EXPECT_EQ(trie.id_at(trie.walk(ab, "cd")), 4);
  EXPECT_EQ(trie.walk(ab, "d"), PieceTrie::kNowhere);
  EXPECT_EQ(trie.walk(PieceTrie::kNowhere, "a"), PieceTrie::kNowhere);
  EXPECT_EQ(trie.walk(0, ""), 0u);
}

TEST(PieceTrie, IsASearchThroughAllPieces) {
  Random random(1, RandomUse::kTest);
  const auto some = [&](index longest) {
    std::string text;
    for (index left = 1 + random.below(longest); left > 0; --left) {
      text += "ab\xC3\xBF"[random.below(4)];
    }
    return text;
  };
  for (int problem = 0; problem < 50; ++problem) {
    std::map<std::string, token> pieces;
    for (token id = 0; id < 60; ++id) pieces.emplace(some(6), id);
    const PieceTrie trie({pieces.begin(), pieces.end()});
    for (int text = 0; text < 50; ++text) {
      const std::string of = some(10);
      Found wanted;
      for (std::size_t length = 1; length <= of.size(); ++length) {
        const auto found = pieces.find(of.substr(0, length));
        if (found != pieces.end()) wanted.emplace_back(length, found->second);
      }
      EXPECT_EQ(prefixes(trie, of), wanted);
    }
  }
}

}  // namespace
}  // namespace fovea
