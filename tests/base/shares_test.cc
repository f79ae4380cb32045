// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/shares.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace fovea {
namespace {

TEST(Shares, HoldEveryItemOnceInOrder) {
  for (const int threads : {1, 2, 3, 8, 100}) {
    for (const index items : {1, 2, 7, 64, 1000}) {
      Shares shares(items, threads);
      EXPECT_LE(shares.size(), threads);
      EXPECT_LE(shares.size(), items);
      index expected = 0;
      for (int share = 0; share < shares.size(); ++share) {
        EXPECT_TRUE(shares.any_left());
        const index first = expected;
        for (index item = shares.take(share); item >= 0; item = shares.take(share)) {
          ASSERT_EQ(item, expected++);
        }
        const index size = expected - first;
        EXPECT_GE(size, items / shares.size());
        EXPECT_LE(size, items / shares.size() + 1);
        EXPECT_EQ(shares.take(share), -1) << "an empty share stays empty";
      }
      EXPECT_EQ(expected, items);
      EXPECT_FALSE(shares.any_left());
    }
  }
}

TEST(Shares, OfManyItemsDoNotOverflow) {
  constexpr index kItems = std::numeric_limits<index>::max();
  Shares shares(kItems, 3);
  EXPECT_EQ(shares.take(0), 0);
  EXPECT_EQ(shares.take(1), kItems / 3 + 1);
  EXPECT_EQ(shares.take(2), 2 * (kItems / 3) + 1);
}

TEST(Shares, AThreadHasItsOwnAgainInTheNextJob) {
  std::vector<int> first, second;
  const auto own = [&](std::vector<int>& owns) {
    Shares shares(100, 2);
    owns = {shares.own(), -1};
    std::thread([&] { owns[1] = shares.own(); }).join();
  };
  own(first);
  own(second);
  EXPECT_EQ(first[0], second[0]);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(second[0], second[1]);
}

TEST(Shares, AreNobodyElsesWhileThereAreEnough) {
  for (const int threads : {2, 3, 8}) {
    Shares shares(1000, threads);
    std::set<int> owned;
    for (int thread = 0; thread < threads; ++thread) {
      std::thread([&] { owned.insert(shares.own()); }).join();
    }
    EXPECT_EQ(owned.size(), static_cast<std::size_t>(threads));
    const int extra = shares.own();
    EXPECT_GE(extra, 0);
    EXPECT_LT(extra, threads);
  }
}

}  // namespace
}  // namespace fovea
