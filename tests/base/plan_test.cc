// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/machine.h"
#include "fovea/base/profile.h"

namespace fovea {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(Plan, LeavesOutTheLoopsOfKernels) {
  Plan plan;
  const Context context = Context(2).planned(plan);
  int calls = 0;
  context.for_each(5, [&](index) { ++calls; });
  context.for_each_in_order(1, [&](index) { ++calls; });
  context.for_ranges(100000, 1e6, [&](index, index) { ++calls; });
  EXPECT_EQ(calls, 0);
  Context(1).for_each(5, [&](index) { ++calls; });
  EXPECT_EQ(calls, 5);
}

TEST(Plan, CountsWhatExistsAtOnceAndTakesNothing) {
  const std::int64_t before = resident_memory_bytes();
  Plan plan;
  {
    const AlignedBytes first = allocate_aligned(3000 * kMiB);
    first[1000] = std::byte{1};  // it can be written, where need be
    EXPECT_EQ(first[2000 * kMiB], std::byte{0});
  }
  const AlignedBytes second = allocate_aligned(2000 * kMiB);
  EXPECT_EQ(plan.buffer_peak(), 3000 * kMiB);
  {
    Scratch scratch;
    scratch.allocate<float>(1 << 20);
    Scratch inner;
    inner.allocate<float>(1 << 10);
  }
  EXPECT_GE(plan.scratch_peak(), 4 * kMiB);
  EXPECT_LT(plan.scratch_peak(), 5 * kMiB);
  EXPECT_EQ(plan.refused_bytes(), 0);
  EXPECT_LT(resident_memory_bytes() - before, std::int64_t{8} << 20);
}

TEST(Plan, AnArenaCountsForItself) {
  Plan plan;
  Arena arena;
  arena.allocate<double>(1 << 20);
  EXPECT_EQ(plan.buffer_peak(), 0);
  EXPECT_EQ(arena.peak(), 8 * kMiB);
}

TEST(Plan, KeepsTheMostThatAThreadTakes) {
  Plan plan;
  plan.add_thread_bytes(5);
  plan.add_thread_bytes(3);
  EXPECT_EQ(plan.thread_bytes(), 5);
}

TEST(Plan, SaysHowMuchTheSystemRefused) {
  Plan plan;
  const AlignedBytes some = allocate_aligned(kMiB);
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;  // more than there are addresses
  EXPECT_THROW(allocate_aligned(kTooMuch), Error);
  EXPECT_EQ(plan.refused_bytes(), kTooMuch + kMiB);
}

TEST(Plan, EndsWithItsScope) {
  {
    Plan plan;
    Plan inner;  // a plan within a plan counts for itself
    const AlignedBytes some = allocate_aligned(kMiB);
    EXPECT_EQ(plan.buffer_peak(), 0);
    EXPECT_EQ(inner.buffer_peak(), kMiB);
  }
  {
    Plan plan;
    {
      const Plan inner;
      Scratch().allocate<double>(1 << 20);  // is freed with the inner plan, and counts there alone
    }
    EXPECT_THROW(allocate_aligned(std::size_t{1} << 60), Error);
    EXPECT_EQ(plan.refused_bytes(), std::size_t{1} << 60);
  }
  const AlignedBytes real = allocate_aligned(kMiB);
  EXPECT_EQ(real.get_deleter().lazy, 0);
}

}  // namespace
}  // namespace fovea
