// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "fovea/base/shares.h"

namespace fovea {
namespace {

TEST(EqualParts, HoldEveryItemOnce) {
  for (const index items : {0, 1, 2, 7, 64, 1000}) {
    for (const index parts : {1, 2, 3, 8, 100}) {
      const EqualParts cut{items, parts};
      index expected = 0;
      for (index part = 0; part < parts; ++part) {
        EXPECT_EQ(cut.begin(part), expected);
        EXPECT_GE(cut.size(part), items / parts);
        EXPECT_LE(cut.size(part), items / parts + 1);
        for (index i = 0; i < cut.size(part); ++i) EXPECT_EQ(cut.holding(expected++), part);
      }
      EXPECT_EQ(expected, items);
      EXPECT_EQ(cut.begin(parts), items);
    }
  }
}

TEST(EqualParts, OfManyItemsDoNotOverflow) {
  constexpr index kItems = std::numeric_limits<index>::max();
  const EqualParts cut{kItems, 3};
  EXPECT_EQ(cut.begin(1), kItems / 3 + 1);
  EXPECT_EQ(cut.begin(2), 2 * (kItems / 3) + 1);
  EXPECT_EQ(cut.holding(kItems - 1), 2);
}

}  // namespace
}  // namespace fovea
