// SPDX-License-Identifier: Apache-2.0
// The pool, seen through the one door to it: Context::for_each.
#include "fovea/base/pool.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/sanitizer.h"
#include "tests/support/first_items.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;

constexpr int kThreadCounts[] = {1, 2, 3, 8, 64, 100};

index sum_below(const Context& ctx, index items) {
  std::atomic<index> sum{0};
  ctx.for_each(items, [&](index item) { sum += item; });
  return sum;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(Pool, RunsEveryItemOnceForAnyNumberOfThreads) {
  for (const int threads : kThreadCounts) {
    for (const index items : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(items));
      Context(threads).for_each(items, [&](index i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const auto& count : runs) ASSERT_EQ(count, 1) << threads << " threads";
    }
  }
}

TEST(Pool, NegativeItemsAreNone) {
  Context(4).for_each(-5, [](index) { FAIL(); });
}

TEST(Pool, AThreadBeginsWithAShareOfItsOwn) {
  for (const int threads : {2, 3, 8}) {
    std::vector<index> begins;
    for (index share = 0; share < threads; ++share) begins.push_back(share * 50);
    for (int round = 0; round < 20; ++round) {
      const auto first = first_items(Context(threads), threads * 50);
      std::vector<index> items;
      for (const auto& [item, thread] : first) items.push_back(item);
      EXPECT_EQ(items, begins);
      EXPECT_EQ(first.at(0), std::this_thread::get_id()) << "the caller has the first share";
    }
  }
}

TEST(Pool, InOrderEachThreadTakesTheLowestItem) {
  for (const int threads : kThreadCounts) {
    std::mutex mutex;
    std::map<std::thread::id, std::vector<index>> taken;
    Context(threads).for_each_in_order(500, [&](index item) {
      const std::lock_guard lock(mutex);
      taken[std::this_thread::get_id()].push_back(item);
    });
    std::size_t count = 0;
    for (const auto& [thread, items] : taken) {
      EXPECT_TRUE(std::is_sorted(items.begin(), items.end()));
      count += items.size();
    }
    EXPECT_EQ(count, 500U);
  }
}

TEST(Pool, AThreadTakesTheItemsOfAShareInOrder) {
  for (const int threads : {2, 3}) {
    std::mutex mutex;
    std::map<std::thread::id, std::vector<index>> taken;
    Context(threads).for_each(500, [&](index item) {
      const std::lock_guard lock(mutex);
      taken[std::this_thread::get_id()].push_back(item);
    });
    EXPECT_LE(taken.size(), static_cast<std::size_t>(threads));
    // A thread goes once round the shares, so it comes to lower items at most once.
    for (const auto& [thread, items] : taken) {
      int descents = 0;
      for (std::size_t i = 1; i < items.size(); ++i) descents += items[i] < items[i - 1];
      EXPECT_LE(descents, 1);
    }
  }
}

// Three items that wait for each other cannot end unless three threads run them.
TEST(Pool, HelpersReallyRunItems) {
  const index before = Context::items_run_by_helpers();
  std::atomic<int> begun{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Context(3).for_each(3, [&](index) {
    ++begun;
    while (begun < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_LT(std::chrono::steady_clock::now(), deadline);
  EXPECT_EQ(Context::items_run_by_helpers() - before, 2);
}

TEST(Pool, UsesNoMoreThreadsThanItWasAllowed) {
  sum_below(Context(64), 64);  // there are many workers now
  for (const int threads : {1, 2, 3}) {
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    Context(threads).for_each(40, [&](index) {
      const int now = ++inside;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::sleep_for(milliseconds(1));
      --inside;
    });
    EXPECT_LE(most, threads);
  }
}

TEST(Pool, TheExceptionOfTheLowestItemReachesTheCaller) {
  for (const int threads : kThreadCounts) {
    for (int round = 0; round < 100; ++round) {
      const index first = round % 10;
      const auto item_of_error = [&] {
        try {
          Context(threads).for_each(200, [&](index item) {
            // The lowest one takes its time: others have thrown before it.
            if (item == first) std::this_thread::sleep_for(std::chrono::microseconds(200));
            if (item >= first) throw item;
          });
        } catch (index item) {
          return item;
        }
        return index{-1};
      };
      ASSERT_EQ(item_of_error(), first) << threads << " threads";
    }
  }
}

TEST(Pool, NoItemsAreBegunAfterAnError) {
  std::atomic<int> begun{0};
  EXPECT_THROWS(Context(4).for_each(1000000,
                                    [&](index item) {
                                      ++begun;
                                      if (item == 3) fail(ErrorCode::kDiverged, "item {}", item);
                                      std::this_thread::sleep_for(milliseconds(1));
                                    }),
                kDiverged, "item 3");
  EXPECT_LT(begun, 100000);
  EXPECT_EQ(sum_below(Context(4), 100), 4950) << "works on after an error";
}

TEST(Pool, NestedCallsUseTheSamePool) {
  for (const int threads : kThreadCounts) {
    const Context ctx(threads);
    std::atomic<index> runs{0};
    ctx.for_each(5, [&](index) {
      ctx.for_each(6, [&](index) { ctx.for_each(7, [&](index) { ++runs; }); });
    });
    EXPECT_EQ(runs, 5 * 6 * 7);
  }
}

TEST(Pool, AnErrorOfANestedCallReachesTheOuterCaller) {
  const Context ctx(4);
  EXPECT_THROWS(ctx.for_each(8,
                             [&](index outer) {
                               ctx.for_each(8, [&](index inner) {
                                 if (outer >= 2 && inner >= 3) {
                                   fail(ErrorCode::kShape, "{} in {}", inner, outer);
                                 }
                               });
                             }),
                kShape, "3 in 2");
}

TEST(Pool, ServesManyCallersAtOnce) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 300; ++round) {
        const Context ctx(kThreadCounts[(caller + round) % 5]);
        if (sum_below(ctx, 50) != 1225) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, WorkersWithoutWorkSleep) {
  sum_below(Context(8), 1000);
  std::this_thread::sleep_for(milliseconds(50));
  const double before = processor_seconds();
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LT(processor_seconds() - before, 0.1);
}

// Also while a call is running that they may not or cannot join.
TEST(Pool, WorkersSleepBesideACallThatHasNoPlaceForThem) {
  sum_below(Context(8), 1000);
  const double before = processor_seconds();
  Context(2).for_each(2, [](index) { std::this_thread::sleep_for(milliseconds(300)); });
  Context(8).for_each(2, [](index) { std::this_thread::sleep_for(milliseconds(300)); });
  EXPECT_LT(processor_seconds() - before, 0.2);
}

#ifndef FOVEA_THREAD_SANITIZER  // which ends a process that starts threads after a fork
TEST(Pool, AForkedChildHasItsOwn) {
  ASSERT_EQ(sum_below(Context(4), 1000), 499500);  // the parent's workers exist
  const pid_t child = fork();
  if (child == 0) _exit(sum_below(Context(4), 1000) == 499500 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(sum_below(Context(4), 1000), 499500);
}

// With as many workers as there are places, each has the same share in every call. (Where there are
// more, it may be another worker that joins.)
TEST(Pool, AWorkerHasTheSameShareInEveryCall) {
  const pid_t child = fork();  // a process without workers
  if (child == 0) {
    alarm(60);
    const Context ctx(3);
    const auto first = first_items(ctx, 150);
    bool same = first.size() == 3;
    for (int round = 0; round < 20; ++round) same = same && first_items(ctx, 150) == first;
    _exit(same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// One worker, which is held; so three calls wait in the list for another. The second ends first.
bool a_call_leaves_the_middle_of_the_list() {
  std::atomic<int> begun{0}, may_end{0};
  const auto call = [&](int number) {
    Context(2).for_each(2, [&](index) {
      ++begun;
      while ((may_end & (1 << number)) == 0) std::this_thread::yield();
    });
  };
  std::vector<std::thread> callers;
  for (int number = 0; number < 4; ++number) {
    callers.emplace_back(call, number);
    // The first call has the worker as well.
    while (begun < 2 + number) std::this_thread::yield();
  }
  for (const int number : {2, 1, 3, 0}) {
    may_end |= 1 << number;
    callers[static_cast<std::size_t>(number)].join();
  }
  return begun == 8 && sum_below(Context(2), 100) == 4950;
}

TEST(Pool, ACallMayLeaveTheMiddleOfTheList) {
  const pid_t child = fork();  // a process without workers
  if (child == 0) {
    alarm(60);
    _exit(a_call_leaves_the_middle_of_the_list() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Pool, AChildForkedWhileOthersCallHasItsOwn) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) sum_below(Context(4), 100);
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(sum_below(Context(3), 100) == 4950 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
  stop = true;
  other.join();
}
#endif

}  // namespace
}  // namespace fovea
