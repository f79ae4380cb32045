// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <vector>

#include "fovea/metrics/ngram_metrics.h"

namespace fovea::detail {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Ngrams, AreCounted) {
  const std::u32string units = U"abab";
  EXPECT_THAT(ngrams_of(units, 1), UnorderedElementsAre(Pair(U"a", 2), Pair(U"b", 2)));
  EXPECT_THAT(ngrams_of(units, 2), UnorderedElementsAre(Pair(U"ab", 2), Pair(U"ba", 1)));
  EXPECT_THAT(ngrams_of(units, 4), UnorderedElementsAre(Pair(U"abab", 1)));
  EXPECT_TRUE(ngrams_of(units, 5).empty());
  EXPECT_EQ(ngram_count(4, 2), 3);
  EXPECT_EQ(ngram_count(4, 5), 0);
}

TEST(Ngrams, SharedOnesAreTheSmallerCounts) {
  const std::u32string a = U"aaab", b = U"aabb", c = U"c";
  EXPECT_EQ(count_shared(ngrams_of(a, 1), ngrams_of(b, 1)), 3);
  EXPECT_EQ(count_shared(ngrams_of(a, 2), ngrams_of(b, 2)), 2);
  EXPECT_EQ(count_shared(ngrams_of(a, 1), ngrams_of(c, 1)), 0);
  Ngrams both = ngrams_of(a, 1);
  take_larger(both, ngrams_of(b, 1));
  take_larger(both, ngrams_of(c, 1));
  EXPECT_THAT(both, UnorderedElementsAre(Pair(U"a", 3), Pair(U"b", 2), Pair(U"c", 1)));
}

TEST(Ngrams, EqualWordsHaveEqualNumbers) {
  WordNumbers numbers;
  const std::vector<std::string_view> first{"a", "b", "a"}, second{"c", "b"};
  const std::u32string one = numbers.of(first), two = numbers.of(second);
  EXPECT_EQ(one[0], one[2]);
  EXPECT_NE(one[0], one[1]);
  EXPECT_EQ(two[1], one[1]);
  EXPECT_NE(two[0], one[0]);
}

}  // namespace
}  // namespace fovea::detail
