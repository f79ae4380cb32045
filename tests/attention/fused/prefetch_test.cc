// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace fovea::testing {
namespace {

// Every item once; what was announced comes next on the same thread.
TEST(ForEachAhead, DoesEachItemOnceAndWhatItAnnounced) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const index items : {0, 1, 2, 7, 64}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(items));
      std::atomic<int> wrong{0}, announced{0};
      detail::for_each_with_next(Context(threads), items, [&](index item, index next) {
        static thread_local index expected = -1;
        ++times[static_cast<std::size_t>(item)];
        if (expected >= 0 && expected != item) ++wrong;
        if (next >= 0) ++announced;
        expected = next;
      });
      for (const auto& count : times) EXPECT_EQ(count, 1);
      EXPECT_EQ(wrong, 0);
      EXPECT_GT(announced, items >= 3 * threads ? 0 : -1);
    }
  }
}

// Waits for what another thread does; not for ever, should there be no other thread to be had.
template <class F>
void wait_until(F&& done) {
  const auto start = std::chrono::steady_clock::now();
  while (!done() && std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) {
    std::this_thread::yield();
  }
}

// The item that for_each_with_next reports, where f(item) says whether it throws.
template <class F>
index reported(int threads, index items, F&& f) {
  try {
    detail::for_each_with_next(Context(threads), items, [&](index item, index) {
      if (f(item)) throw item;
    });
  } catch (index item) {
    return item;
  }
  return -1;
}

TEST(ForEachAhead, ThrowsWhatTheLowestItemThrows) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const index lowest : {0, 3, 11, 31}) {
      EXPECT_EQ(reported(threads, 32, [&](index item) { return item >= lowest; }), lowest);
    }
    EXPECT_EQ(reported(threads, 32, [](index) { return false; }), -1);
  }
}

// Items 0 to 3 are one thread's, which gets as far as 3; the other is through with its own and
// helps with 2.
TEST(ForEachAhead, KnowsTheLowestItemWhoeverDidIt) {
  std::atomic<bool> begun[8] = {};
  const index thrown = reported(2, 8, [&](index item) {
    begun[item] = true;
    if (item == 0) wait_until([&] { return begun[2].load(); });
    if (item == 2) wait_until([&] { return begun[3].load(); });
    return item == 2 || item == 3;
  });
  EXPECT_EQ(thrown, 2);
}

// An exception stops what lies above it, and nothing below.
TEST(ForEachAhead, DoesEverythingBelowTheExceptionItThrows) {
  std::atomic<bool> begun[8] = {};
  const index thrown = reported(2, 8, [&](index item) {
    if (item == 0) wait_until([&] { return begun[4].load(); });
    begun[item] = true;
    return item == 4;
  });
  EXPECT_EQ(thrown, 4);
  for (index lower = 0; lower < 4; ++lower) EXPECT_TRUE(begun[lower]) << lower;
}

}  // namespace
}  // namespace fovea::testing
