// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/length_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace fovea {
namespace {

using Batches = std::vector<std::vector<index>>;

Batches batches_of(const std::vector<index>& lengths, const BatchSizes& sizes, index threads = 1) {
  const LengthBatches made(lengths, sizes, threads);
  Batches all;
  for (index b = 0; b < made.size(); ++b) all.emplace_back(made[b].begin(), made[b].end());
  return all;
}

TEST(LengthBatches, HaveTheLongestFirstAndEqualOnesInTheirOrder) {
  EXPECT_EQ(batches_of({2, 5, 1, 5, 2}, {.fewest = 100, .most = 100}), (Batches{{1, 3, 0, 4, 2}}));
  EXPECT_EQ(batches_of({}, {.most = 9}), Batches{});
}

TEST(LengthBatches, EndBeforeTheyAreTooLong) {
  const BatchSizes sizes{.fewest = 6, .most = 6};
  EXPECT_EQ(batches_of({3, 3, 3, 2, 2, 2}, sizes), (Batches{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(batches_of({9, 7, 1}, sizes), (Batches{{0}, {1}, {2}}));  // the longer ones alone
  EXPECT_EQ(batches_of({9, 9, 9}, {.unit = BatchUnit::kInputs, .fewest = 2, .most = 2}),
            (Batches{{0, 1}, {2}}));
}

TEST(LengthBatches, AreSoManyThatEachThreadHasSome) {
  const std::vector<index> lengths(32, 1);
  const BatchSizes sizes{.fewest = 3, .most = 20, .of_thread = 2};
  EXPECT_EQ(batches_of(lengths, sizes, 1).size(), 2);
  EXPECT_EQ(batches_of(lengths, sizes, 2).size(), 4);
  EXPECT_EQ(batches_of(lengths, sizes, 16).size(), 11);  // of 3, the fewest
}

TEST(BatchWorkers, GiveASingleBatchAllThreads) {
  std::atomic<index> made = 0, threads = 0;
  BatchWorkers<index> workers(Context(2), [&](const Context& context) {
    ++made;
    return std::make_unique<index>(context.threads());
  });
  const auto work = [&](index worker, std::span<const index> batch) {
    threads += worker * static_cast<index>(batch.size());
  };
  const BatchSizes sizes{.fewest = 4, .most = 4};
  workers.for_each(LengthBatches({1, 1}, sizes, 2), work);
  EXPECT_EQ(threads, 2 * 2);
  workers.for_each(LengthBatches({4, 4, 4}, sizes, 2), work);
  EXPECT_EQ(threads, 2 * 2 + 3 * 1);
  workers.for_each(LengthBatches({1, 1}, sizes, 2), work);  // with the first worker again
  EXPECT_LE(made, 3);
  EXPECT_GT(workers.seconds(), 0);
}

}  // namespace
}  // namespace fovea
