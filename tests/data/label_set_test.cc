// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/label_set.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace fovea {
namespace {

TEST(LabelSet, IsInNaturalOrder) {
  const LabelSet labels({"10", "2", "b", "class 10", "class 9", "2", "-1", "-3", "007", "差", "a"});
  EXPECT_THAT(labels.names(), testing::ElementsAre("-3", "-1", "2", "007", "10", "a", "b",
                                                   "class 9", "class 10", "差"));
  EXPECT_EQ(labels.find("007"), 3);
  EXPECT_EQ(labels.find("7"), -1);
}

TEST(LabelSet, NamesThatAreAlikeAreFound) {
  EXPECT_EQ(names_alike(std::vector<std::string>{"a", "b", "ab"}), "");
  EXPECT_EQ(names_alike(std::vector<std::string>{"Pos", "neg", "pos", "very good", "very  good"}),
            "Pos and pos, very good and very  good");
  EXPECT_EQ(names_alike(std::vector<std::string>{"A", "a", "B", "b", "C", "c", "D", "d"}),
            "A and a, B and b, C and c, ...");
  EXPECT_EQ(names_alike(std::vector<std::string>{"\u00C4\u00A0x", "\u00E4x"}),
            "\u00C4\u00A0x and \u00E4x");
}

TEST(NaturalLess, IsAStrictOrder) {
  const std::vector<std::string> all = {"",   "-",  "-1",  "-01", "0",  "00", "1",  "01",
                                        "1a", "a1", "a01", "a10", "a2", "-a", "1-", "1-2"};
  for (const std::string& a : all) {
    EXPECT_FALSE(natural_less(a, a)) << a;
    for (const std::string& b : all) {
      if (a != b) {
        EXPECT_NE(natural_less(a, b), natural_less(b, a)) << a << " " << b;
      }
      for (const std::string& c : all) {
        if (natural_less(a, b) && natural_less(b, c)) {
          EXPECT_TRUE(natural_less(a, c)) << a << " " << b << " " << c;
        }
      }
    }
  }
}

TEST(DrawStratified, TakesAPartOfEachStratum) {
  std::vector<index> strata;
  for (index i = 0; i < 1000; ++i) strata.push_back(i % 10 == 0 ? 1 : 0);
  const std::vector<bool> drawn = draw_stratified(strata, 0.1, 4);
  index counts[2] = {0, 0};
  for (std::size_t i = 0; i < strata.size(); ++i) counts[strata[i]] += drawn[i] ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(counts[0]), 90, 1);
  EXPECT_NEAR(static_cast<double>(counts[1]), 10, 1);
  EXPECT_EQ(counts[0] + counts[1], 100);
  EXPECT_EQ(draw_stratified(strata, 0.1, 4), drawn);
  EXPECT_NE(draw_stratified(strata, 0.1, 5), drawn);
}

TEST(DrawStratified, LeavesAnItemOfEachStratum) {
  const std::vector<bool> drawn = draw_stratified(std::vector<index>{0, 1, 2, 2}, 0.9, 1);
  EXPECT_FALSE(drawn[0]);
  EXPECT_FALSE(drawn[1]);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), true), 1);
  EXPECT_THAT(draw_stratified(std::vector<index>(9), 0, 1), testing::Each(false));
  EXPECT_TRUE(draw_stratified({}, 0.5, 1).empty());
}

}  // namespace
}  // namespace fovea
