// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/merge_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace fovea {
namespace {

struct Merge {
  token left, right, joined;
};

// The pair of lowest rank, of equal ones the leftmost, again and again.
std::vector<token> joined_one_by_one(std::vector<token> ids, const std::vector<Merge>& merges) {
  while (true) {
    std::size_t rank = merges.size(), place = 0;
    for (std::size_t n = 0; n + 1 < ids.size(); ++n) {
      for (std::size_t m = 0; m < rank; ++m) {
        if (merges[m].left == ids[n] && merges[m].right == ids[n + 1]) {
          rank = m;
          place = n;
        }
      }
    }
    if (rank == merges.size()) return ids;
    ids[place] = merges[rank].joined;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

// Texts of a few letters, each of which is made in all ways that there are, or in some of them.
std::vector<Merge> drawn_merges(std::mt19937& draw, int letters, bool all_ways) {
  std::map<std::string, token> ids;
  for (int n = 0; n < letters; ++n) ids.emplace(std::string(1, static_cast<char>('a' + n)), n);
  for (int n = 0; n < 12; ++n) {
    std::string text;
    const std::size_t length = 2 + draw() % 4;
    while (text.size() < length) text += static_cast<char>('a' + draw() % letters);
    ids.emplace(text, static_cast<token>(ids.size()));
  }
  std::vector<Merge> merges;
  for (const auto& [text, id] : ids) {
    for (std::size_t at = 1; at < text.size(); ++at) {
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end() || (!all_ways && draw() % 2 == 0)) continue;
      merges.push_back({left->second, right->second, id});
    }
  }
  std::shuffle(merges.begin(), merges.end(), draw);
  return merges;
}

// Longer ones are cut where no merge reaches across, and joined by a heap.
TEST(MergeTable, JoinsAsOneMergeAfterAnother) {
  std::mt19937 draw(1);
  for (int n = 0; n < 60; ++n) {
    const int letters = 3 + n % 4;
    const std::vector<Merge> merges = drawn_merges(draw, letters, n % 2 == 0);
    MergeTable table(merges.size());
    for (const Merge& one : merges) ASSERT_TRUE(table.add(one.left, one.right, one.joined));
    table.finish();
    for (const std::size_t length : {0, 1, 5, 64, 65, 150}) {
      std::vector<token> ids{-7};
      while (ids.size() <= length) ids.push_back(static_cast<token>(draw() % letters));
      std::vector<token> expected =
          joined_one_by_one(std::vector<token>(ids.begin() + 1, ids.end()), merges);
      table.join(ids, 1);
      EXPECT_EQ(ids.front(), -7);
      EXPECT_EQ(std::vector<token>(ids.begin() + 1, ids.end()), expected) << n << " " << length;
    }
  }
}

TEST(MergeTable, WithoutMergesNothingIsJoined) {
  MergeTable table;
  table.finish();
  std::vector<token> ids(100, 3);
  table.join(ids, 0);
  EXPECT_EQ(ids, std::vector<token>(100, 3));
}

TEST(MergeTable, APairIsAddedOnce) {
  MergeTable table(2);
  EXPECT_TRUE(table.add(0, 1, 2));
  EXPECT_FALSE(table.add(0, 1, 2));
}

// What is made of itself has no end, and looking for one ends.
TEST(MergeTable, TokensInACircleAreJoinedAllTheSame) {
  MergeTable table(3);
  EXPECT_TRUE(table.add(1, 0, 2));
  EXPECT_TRUE(table.add(2, 0, 1));
  table.finish();
  std::vector<token> ids(100, 0);
  ids.front() = 1;
  table.join(ids, 0);
  EXPECT_EQ(ids, joined_one_by_one(
                     [] {
                       std::vector<token> same(100, 0);
                       same.front() = 1;
                       return same;
                     }(),
                     {{1, 0, 2}, {2, 0, 1}}));
}

}  // namespace
}  // namespace fovea
