// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/epoch_order.h"

#include <gmock/gmock.h>

#include <set>

namespace fovea {
namespace {

index length_of(index i) { return 1 + i % 7; }

std::vector<index> epoch_of(EpochOrder& order, index epoch, index accumulate = 1) {
  std::vector<index> items;
  for (index u = 0; u < order.updates_per_epoch(); ++u) {
    for (index n = 0; n < accumulate; ++n) {
      const auto batch = order.batch(epoch * order.updates_per_epoch() + u, n, length_of);
      items.insert(items.end(), batch.begin(), batch.end());
    }
  }
  return items;
}

TEST(EpochOrder, ShowsEachItemOnceAnEpoch) {
  EpochOrder order({.size = 103, .batch_size = 4, .accumulate = 3, .seed = 2});
  EXPECT_EQ(order.updates_per_epoch(), 9);
  const std::vector<index> first = epoch_of(order, 0, 3), second = epoch_of(order, 1, 3);
  EXPECT_EQ(first.size(), 103u);
  EXPECT_EQ(std::set<index>(first.begin(), first.end()).size(), 103u);
  EXPECT_EQ(std::set<index>(second.begin(), second.end()).size(), 103u);
  EXPECT_NE(first, second);
}

TEST(EpochOrder, IsAFunctionOfSeedAndPlace) {
  EpochOrder a({.size = 50, .batch_size = 4, .seed = 2}),
      b({.size = 50, .batch_size = 4, .seed = 2}), other({.size = 50, .batch_size = 4, .seed = 3});
  const std::vector<index> later = epoch_of(a, 2);
  epoch_of(b, 0);
  EXPECT_EQ(epoch_of(b, 2), later);
  EXPECT_NE(epoch_of(other, 2), later);
}

TEST(EpochOrder, PutsItemsOfALengthTogether) {
  const auto spread = [](bool by_length) {
    EpochOrder order({.size = 700, .batch_size = 10, .seed = 1, .by_length = by_length});
    index sum = 0;
    for (index u = 0; u < order.updates_per_epoch(); ++u) {
      std::set<index> lengths;
      for (const index i : order.batch(u, 0, length_of)) lengths.insert(length_of(i));
      sum += static_cast<index>(lengths.size());
    }
    return sum;
  };
  EXPECT_LE(spread(true), 2 * 70);
  EXPECT_GT(spread(false), 4 * 70);
}

TEST(Shuffle, KeepsAllValues) {
  std::vector<index> values = {1, 2, 3, 4, 5, 6, 7, 8};
  Random random(1, RandomUse::kTest);
  shuffle(values, random);
  EXPECT_THAT(values, testing::UnorderedElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(values, testing::Not(testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)));
}

}  // namespace
}  // namespace fovea
