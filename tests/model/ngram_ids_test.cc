// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/ngram_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "fovea/base/random.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Ids = std::vector<std::int32_t>;

// As the header says it.
std::int32_t plain_row(const Ids& ids, std::size_t first, std::size_t n, index buckets) {
  std::uint64_t h = 0;
  for (std::size_t i = first; i < first + n; ++i) {
    h = (h + static_cast<std::uint64_t>(ids[i]) + 1) * 0x9E3779B97F4A7C15;
  }
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EB;
  return static_cast<std::int32_t>((h ^ (h >> 31)) % static_cast<std::uint64_t>(buckets));
}

Ids rows_of(const Ids& ids, const Ids& offsets, const NgramOptions& options, int threads = 1) {
  Ids starts(offsets.size());
  const index count =
      ngram_offsets(offsets, options.longest, {starts.data(), static_cast<index>(starts.size())});
  Ids rows(static_cast<std::size_t>(count), -1);
  hash_ngrams(Context(threads), {ids, offsets}, options, {rows.data(), count});
  return rows;
}

TEST(NgramIds, AreThoseOfTheDefinition) {
  Random random(5, RandomUse::kTest);
  Ids ids, offsets = {0};
  for (int length : {3, 0, 1, 12, 2, 5}) {
    for (int i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>(random.below(2000)));
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
  }
  for (const index longest : {index{2}, index{3}, kLongestNgram}) {
    for (const index buckets : {index{1}, index{7}, index{2000000}, index{INT32_MAX}}) {
      Ids expected;
      for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
        const auto first = static_cast<std::size_t>(offsets[s]);
        for (auto last = first; last < static_cast<std::size_t>(offsets[s + 1]); ++last) {
          const auto most = std::min(last - first + 1, static_cast<std::size_t>(longest));
          for (std::size_t n = 2; n <= most; ++n) {
            expected.push_back(plain_row(ids, last + 1 - n, n, buckets));
          }
        }
      }
      for (const int threads : {1, 3}) {
        EXPECT_EQ(rows_of(ids, offsets, {longest, buckets}, threads), expected) << longest;
      }
    }
  }
}

// Models keep their rows, so these may never change.
TEST(NgramIds, StayAsTheyWere) {
  EXPECT_THAT(rows_of({7, 8, 9}, {0, 3}, {3, 500000}), testing::ElementsAre(64702, 125341, 198006));
}

TEST(NgramIds, AreFewInShortTexts) {
  for (const index tokens : {0, 1}) EXPECT_EQ(ngram_count(tokens, 3), 0);
  EXPECT_EQ(ngram_count(2, 3), 1);
  EXPECT_EQ(ngram_count(5, 2), 4);
  EXPECT_EQ(ngram_count(5, 16), 4 + 3 + 2 + 1);
}

TEST(NgramIds, BeginWhereTheirTextBegins) {
  const Ids offsets = {0, 0, 1, 3, 8};
  Ids starts(5);
  EXPECT_EQ(ngram_offsets(offsets, 3, {starts.data(), 5}), 8);
  EXPECT_EQ(starts, Ids({0, 0, 0, 1, 8}));
}

TEST(NgramIds, OrderAndLengthCount) {
  Ids ids, offsets = {0};
  for (std::int32_t a = 0; a < 30; ++a)
    for (std::int32_t b = 0; b < 30; ++b) {
      ids.insert(ids.end(), {a, b});
      offsets.push_back(static_cast<std::int32_t>(ids.size()));
    }
  const Ids rows = rows_of(ids, offsets, {2, INT32_MAX});
  EXPECT_EQ(std::set<std::int32_t>(rows.begin(), rows.end()).size(), 900u);
  // Into as many rows as there are pairs, they fall as by chance: 1 - 1/e of the rows have some.
  const Ids few = rows_of(ids, offsets, {2, 900});
  EXPECT_NEAR(static_cast<double>(std::set<std::int32_t>(few.begin(), few.end()).size()), 569, 40);
}

TEST(NgramIds, SizesThatDoNotFitAreErrors) {
  const Ids ids = {1, 2, 3}, offsets = {0, 3};
  Ids rows(3);
  const auto hash = [&](index longest, index buckets, index count) {
    hash_ngrams(Context(1), {ids, offsets}, {longest, buckets}, {rows.data(), count});
  };
  EXPECT_THROWS(hash(1, 5, 3), kShape, "2 to 16");
  EXPECT_THROWS(hash(17, 5, 3), kShape, "2 to 16");
  EXPECT_THROWS(hash(3, 0, 3), kShape, "buckets");
  EXPECT_THROWS(hash(3, 5, 2), kShape, "room for 2 rows; there are 3");
  const Ids many = {0, INT32_MAX};
  Ids starts(2);
  EXPECT_THROWS(ngram_offsets(many, 3, {starts.data(), 2}), kShape, "more than 2^31 - 1");
}

}  // namespace
}  // namespace fovea
