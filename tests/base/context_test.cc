// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/context.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using Ranges = std::vector<std::pair<index, index>>;

Ranges ranges_of(int threads, index n, double cost) {
  std::mutex mutex;
  Ranges ranges;
  Context(threads).for_ranges(n, cost, [&](index begin, index end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST(Context, AnAbsurdNumberOfThreadsIsRefused) {
  EXPECT_EQ(Context(1024).threads(), 1024);
  EXPECT_THROWS(Context(100000), kOptionValue, "at most 1024 threads; got 100000");
}

TEST(Context, UsesAllCoresUnlessToldOtherwise) {
  EXPECT_EQ(Context().threads(), available_cores());
  EXPECT_EQ(Context(0).threads(), available_cores());
  EXPECT_EQ(Context(-1).threads(), available_cores());
  EXPECT_EQ(Context(3).threads(), 3);
}

TEST(Context, KeepsItsThreadsInAnotherPrecision) {
  const Context context = Context(3).with(Precision::kBFloat16);
  EXPECT_EQ(context.threads(), 3);
  EXPECT_EQ(context.precision(), Precision::kBFloat16);
  EXPECT_EQ(context.with(Precision::kFloat32).precision(), Precision::kFloat32);
  EXPECT_EQ(Context(3).precision(), Precision::kFloat32);
}

TEST(AvailableCores, AreThoseOfTheAffinityMask) {
  std::thread([] {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    EXPECT_GE(available_cores(), 1);
    EXPECT_LE(available_cores(), CPU_COUNT(&mine));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &mine)) CPU_SET(core, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(available_cores(), 1);
  }).join();
}

TEST(ForRanges, CoversEverythingOnce) {
  for (const index n : {0, 1, 2, 255, 256, 257, 1000, 12345}) {
    for (const double cost : {0.0, 1.0, 100.0, 1e9}) {
      index next = 0;
      for (const auto& [begin, end] : ranges_of(3, n, cost)) {
        EXPECT_EQ(begin, next);
        EXPECT_LT(begin, end);
        next = end;
      }
      EXPECT_EQ(next, n);
    }
  }
}

// The bits of a result depend on where the work is cut: never on who does it.
TEST(ForRanges, CutsAtTheSamePlacesForAnyNumberOfThreads) {
  for (const index n : {7, 300, 5000}) {
    for (const double cost : {1.0, 1000.0, 1e6}) {
      const Ranges alone = ranges_of(1, n, cost);
      for (const int threads : {2, 3, 8}) EXPECT_EQ(ranges_of(threads, n, cost), alone);
    }
  }
}

TEST(ForRanges, HandsOverNothingThatIsNotWorthIt) {
  EXPECT_EQ(ranges_of(4, 1000, 1), (Ranges{{0, 1000}}));
  EXPECT_EQ(ranges_of(4, 2, 1e6), (Ranges{{0, 1}, {1, 2}}));
  EXPECT_LE(ranges_of(4, 100000, 1e6).size(), 256u);
}

}  // namespace
}  // namespace fovea
