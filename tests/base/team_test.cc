// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/team.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "tests/support/first_items.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;

index sum_below(const Context& ctx, index items) {
  std::atomic<index> sum{0};
  ctx.for_each(items, [&](index item) { sum += item; });
  return sum;
}

// Three threads, started for each call.
class ThreeThreads : public Team {
 public:
  bool is_of(int threads) const override { return threads == 3; }
  void run(int threads, void (*work)(void*, int), void* data) const override {
    ++calls;
    std::vector<std::thread> others;
    for (int n = 1; n < threads; ++n) others.emplace_back(work, data, n);
    work(data, 0);
    for (std::thread& other : others) other.join();
  }
  mutable std::atomic<int> calls{0};
};

TEST(Team, RunsEveryItemOnce) {
  const ThreeThreads team;
  const Context ctx = Context(3).on(team);
  const index before = Context::items_run_by_helpers();
  for (const index items : {2, 7, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(items));
    ctx.for_each(items, [&](index i) { ++runs[static_cast<std::size_t>(i)]; });
    for (const auto& count : runs) ASSERT_EQ(count, 1);
  }
  EXPECT_EQ(team.calls, 3);
  EXPECT_EQ(Context::items_run_by_helpers(), before) << "no thread of the pool worked";
}

TEST(Team, AThreadBeginsWithTheShareOfItsNumber) {
  const ThreeThreads team;
  const auto first = first_items(Context(3).on(team), 150);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first.at(0), std::this_thread::get_id());
  EXPECT_TRUE(first.contains(50));
  EXPECT_TRUE(first.contains(100));
}

TEST(Team, ThreePlacesAreThreeThreads) {
  const ThreeThreads team;
  std::atomic<int> begun{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Context(3).on(team).for_each(3, [&](index) {
    ++begun;
    while (begun < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST(Team, OfAnotherSizeItIsNotUsed) {
  const ThreeThreads team;
  EXPECT_EQ(sum_below(Context(2).on(team), 100), 4950);
  EXPECT_EQ(sum_below(Context(1).on(team), 100), 4950);
  EXPECT_EQ(sum_below(Context(3).on(team), 1), 0) << "one item needs no other thread";
  EXPECT_EQ(team.calls, 0);
}

TEST(Team, TheExceptionOfTheLowestItemReachesTheCaller) {
  const ThreeThreads team;
  EXPECT_THROWS(Context(3).on(team).for_each(200,
                                             [&](index item) {
                                               if (item == 5) {
                                                 std::this_thread::sleep_for(milliseconds(1));
                                               }
                                               if (item >= 5) {
                                                 fail(ErrorCode::kShape, "item {}", item);
                                               }
                                             }),
                kShape, "item 5");
}

TEST(Team, NestedCallsUseItToo) {
  const ThreeThreads team;
  const Context ctx = Context(3).on(team);
  std::atomic<index> runs{0};
  ctx.for_each(5, [&](index) { ctx.for_each(6, [&](index) { ++runs; }); });
  EXPECT_EQ(runs, 30);
  EXPECT_EQ(team.calls, 6);
}

}  // namespace
}  // namespace fovea
