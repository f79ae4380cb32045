// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/epoch_order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "fovea/base/random.h"
#include "tests/support/throws.h"

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

std::vector<TokenItem> random_items(index count, index longest) {
  Random random(1, RandomUse::kTest);
  std::vector<TokenItem> items;
  for (index n = 0; n < count; ++n) items.push_back({1 + random.below(longest), random.below(9)});
  return items;
}

index tokens_of(std::span<const index> batch, const std::vector<TokenItem>& items) {
  index sum = 0;
  for (const index i : batch) sum += items[static_cast<std::size_t>(i)].tokens;
  return sum;
}

TEST(TokenOrder, AnEpochSeesEveryItemOnceInFullBatches) {
  for (const index accumulate : {1, 3}) {
    const auto items = random_items(997, 20);
    TokenOrder order({.items = items, .batch_tokens = 60, .accumulate = accumulate, .seed = 3});
    for (index epoch = 0; epoch < 2; ++epoch) {
      std::vector<index> seen;
      for (index u = 0; u < order.updates_per_epoch(); ++u) {
        for (index b = 0; b < accumulate; ++b) {
          const auto batch = order.batch(epoch * order.updates_per_epoch() + u, b);
          EXPECT_FALSE(batch.empty());
          EXPECT_LE(tokens_of(batch, items), order.largest_batch());
          EXPECT_GE(tokens_of(batch, items), 60 - 20);
          seen.insert(seen.end(), batch.begin(), batch.end());
        }
      }
      std::sort(seen.begin(), seen.end());
      std::vector<index> all(997);
      std::iota(all.begin(), all.end(), index{0});
      EXPECT_EQ(seen, all);
    }
  }
}

TEST(TokenOrder, ABatchHoldsItemsOfAboutTheSameLengthAndEpochsDiffer) {
  const auto items = random_items(2000, 50);
  TokenOrder order({.items = items, .batch_tokens = 100, .seed = 3});
  index spread = 0;
  for (index u = 0; u < order.updates_per_epoch(); ++u) {
    const auto batch = order.batch(u, 0);
    index least = 99, most = 0;
    for (const index i : batch) {
      least = std::min(least, items[static_cast<std::size_t>(i)].tokens);
      most = std::max(most, items[static_cast<std::size_t>(i)].tokens);
    }
    spread += most - least;
  }
  EXPECT_LT(spread, 3 * order.updates_per_epoch());
  const auto first = order.batch(0, 0);
  const std::vector<index> before(first.begin(), first.end());
  const auto next = order.batch(order.updates_per_epoch(), 0);
  EXPECT_NE(before, std::vector<index>(next.begin(), next.end()));
  // And the first epoch is there again.
  const auto again = order.batch(0, 0);
  EXPECT_EQ(before, std::vector<index>(again.begin(), again.end()));
}

// Items longer than a batch make batches of their own; fewer tokens than a batch make one.
TEST(TokenOrder, LongItemsAndFewItems) {
  TokenOrder order({.items = {{100, 0}, {1, 0}, {100, 0}, {2, 0}}, .batch_tokens = 10, .seed = 1});
  for (index u = 0; u < order.updates_per_epoch(); ++u) EXPECT_FALSE(order.batch(u, 0).empty());
  TokenOrder few({.items = {{3, 0}, {4, 0}}, .batch_tokens = 1000, .seed = 1});
  EXPECT_EQ(few.updates_per_epoch(), 1);
  EXPECT_EQ(few.batch(0, 0).size(), 2u);
  EXPECT_EQ(few.largest_batch(), 7);
  EXPECT_THROWS(few.batch(0, 1), kShape, "no batch 1 of 1");
  EXPECT_THROWS(TokenOrder({}), kInternal, "0 items");
}

}  // namespace
}  // namespace fovea
