// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "fovea/kernel/gemm.h"

namespace fovea::detail {
namespace {

TEST(ProductCut, CoversEveryTileOnce) {
  for (const index M : {1, 40, 95, 96, 1000}) {
    for (const index N : {1, 64, 700}) {
      for (const index groups : {0, 1, 2, 3}) {  // 0: columns first
        ProductCut cut{{M, 96, 6}, {N, 128, 64}, groups == 0};
        cut.groups = std::clamp<index>(groups, 1, cut.rows.parts());
        std::set<std::pair<index, index>> begun;
        index values = 0;
        for (index i = 0; i < cut.items(); ++i) {
          const auto [rows, columns] = cut.item(i);
          begun.emplace(rows.begin, columns.begin);
          values += (rows.end - rows.begin) * (columns.end - columns.begin);
        }
        EXPECT_EQ(std::ssize(begun), cut.items());
        EXPECT_EQ(values, M * N);
      }
    }
  }
}

// Two threads that halve a list have half of the rows each.
TEST(ProductCut, AShareHasItsOwnRows) {
  for (const bool columns_first : {false, true}) {
    const ProductCut cut{{8 * 96, 96, 6}, {7 * 128, 128, 64}, columns_first, 2};
    for (index i = 0; i < cut.items(); ++i) {
      EXPECT_EQ(cut.item(i).rows.begin < 4 * 96, i < cut.items() / 2);
    }
  }
}

TEST(TwoProducts, HaveEveryItemOnce) {
  for (const index first : {0, 1, 5, 12}) {
    for (const index second : {1, 2, 17, 40}) {
      for (index shares = 1; shares <= first + second; ++shares) {
        const TwoProducts both{first, second, shares};
        std::set<std::pair<bool, index>> items;
        for (index i = 0; i < both.items(); ++i) {
          const auto [is_of_first, number] = both.item(i);
          EXPECT_GE(number, 0);
          EXPECT_LT(number, is_of_first ? first : second);
          items.emplace(is_of_first, number);
        }
        ASSERT_EQ(std::ssize(items), first + second);
      }
    }
  }
}

TEST(TwoProducts, AShareBeginsWithItsPartOfTheFirst) {
  const TwoProducts both{4, 10, 2};
  for (index i = 0; i < 14; ++i) EXPECT_EQ(both.item(i).is_of_first, i % 7 < 2) << i;
}

}  // namespace
}  // namespace fovea::detail
