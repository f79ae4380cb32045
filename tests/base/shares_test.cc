// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/shares.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Shares, AreAsManyAsThreadsThatFindAnItem) {
  EXPECT_EQ(Shares::count(1000, 3), 3);
  EXPECT_EQ(Shares::count(2, 3), 2);
  EXPECT_EQ(Shares::count(0, 3), 1);
  EXPECT_EQ(Shares::count(1000, 100), Shares::kMost);
}

TEST(Shares, HoldEveryItemOnceInOrder) {
  for (const int threads : {1, 2, 3, 8, 100}) {
    for (const index items : {1, 2, 7, 64, 1000}) {
      const EqualParts cut{items, Shares::count(items, threads)};
      Shares shares(cut);
      for (int share = 0; share < cut.parts; ++share) {
        for (index i = 0; i < cut.size(share); ++i) {
          EXPECT_TRUE(shares.any_left(share));
          ASSERT_EQ(shares.take(share), cut.begin(share) + i);
        }
        EXPECT_FALSE(shares.any_left(share));
        EXPECT_EQ(shares.take(share), -1);
        EXPECT_EQ(shares.take(share), -1) << "an empty share stays empty";
      }
    }
  }
}

TEST(Shares, SpareTheLastItems) {
  Shares shares({5, 1});
  EXPECT_EQ(shares.take(0, 3), 0);
  EXPECT_EQ(shares.take(0, 3), 1);
  EXPECT_EQ(shares.take(0, 3), -1);
  EXPECT_EQ(shares.take(0), 2);
}

}  // namespace
}  // namespace fovea
