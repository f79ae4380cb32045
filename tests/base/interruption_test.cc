// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/interruption.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fovea/base/context.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;

constexpr int kThreadCounts[] = {1, 2, 3, 8};
constexpr index kMany = 1'000'000;

TEST(InterruptionScope, IsOfItsThreadAndEnds) {
  EXPECT_EQ(InterruptionScope::current(), nullptr);
  InterruptionFlag outer, inner;
  {
    const InterruptionScope of_outer(outer);
    {
      const InterruptionScope of_inner(inner);
      EXPECT_EQ(InterruptionScope::current(), &inner);
      std::thread([] { EXPECT_EQ(InterruptionScope::current(), nullptr); }).join();
    }
    EXPECT_EQ(InterruptionScope::current(), &outer);
  }
  EXPECT_EQ(InterruptionScope::current(), nullptr);
}

// How many of the items ran, if the flag is set by one of them.
index items_until_interrupted(const Context& ctx) {
  InterruptionFlag flag;
  const InterruptionScope scope(flag);
  std::atomic<index> runs{0};
  EXPECT_THROW(ctx.for_each(kMany,
                            [&](index) {
                              if (++runs == 10) flag.request();
                            }),
               Interrupted);
  return runs;
}

TEST(Interruption, EndsALoopForAnyNumberOfThreads) {
  for (const int threads : kThreadCounts) {
    EXPECT_LT(items_until_interrupted(Context(threads)), kMany) << threads << " threads";
    std::atomic<index> runs{0};
    Context(threads).for_each(100, [&](index) { ++runs; });
    EXPECT_EQ(runs, 100) << "the next loop runs";
  }
}

TEST(Interruption, NothingBeginsIfItWasAskedBefore) {
  InterruptionFlag flag;
  flag.request();
  const InterruptionScope scope(flag);
  for (const int threads : kThreadCounts) {
    EXPECT_THROW(Context(threads).for_each(100, [](index) { FAIL(); }), Interrupted);
  }
}

TEST(Interruption, OneOfAnotherThreadDoesNotCount) {
  InterruptionFlag flag;
  flag.request();
  const InterruptionScope scope(flag);
  std::thread([] {
    std::atomic<int> runs{0};
    Context(3).for_each(100, [&](index) { ++runs; });
    EXPECT_EQ(runs, 100);
  }).join();
}

// Workers and nested loops see the scope of the caller, and nothing once its loop is over.
TEST(Interruption, WhoeverWorksForTheCallSeesIt) {
  const InterruptionFlag flag;
  const Context ctx(3);
  {
    const InterruptionScope scope(flag);
    ctx.for_each(30, [&](index) {
      EXPECT_EQ(InterruptionScope::current(), &flag);
      ctx.for_each(10, [&](index) { EXPECT_EQ(InterruptionScope::current(), &flag); });
      std::this_thread::sleep_for(milliseconds(1));
    });
  }
  ctx.for_each(30, [&](index) {
    EXPECT_EQ(InterruptionScope::current(), nullptr);
    std::this_thread::sleep_for(milliseconds(1));
  });
}

// Asks as soon as the thread that made it looks after it was told to.
class SeenByItsThread final : public Interruption {
 public:
  bool requested() const override {
    if (told && std::this_thread::get_id() == thread_) seen = true;
    return seen;
  }
  mutable std::atomic<bool> told{false}, seen{false};

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
};

// The caller's items are done, and it waits for a worker: it looks all the same. The worker either
// ends when it sees the request, or is done without a look: then the call is no less interrupted.
class InterruptionOfAWait : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WorkersLook, InterruptionOfAWait, testing::Bool());

TEST_P(InterruptionOfAWait, IsSeenByTheCaller) {
  const SeenByItsThread request;
  const InterruptionScope scope(request);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> begun{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto late = [&] { return std::chrono::steady_clock::now() > deadline; };
  EXPECT_THROW(Context(2).for_each(2,
                                   [&](index) {
                                     ++begun;
                                     while (begun < 2 && !late()) std::this_thread::yield();
                                     if (std::this_thread::get_id() == caller) return;
                                     std::this_thread::sleep_for(milliseconds(20));
                                     request.told = true;
                                     while (!late()) {
                                       if (GetParam()) stop_if_interrupted();
                                       if (!GetParam() && request.seen) return;
                                       std::this_thread::yield();
                                     }
                                   }),
               Interrupted);
  EXPECT_FALSE(late());
}

}  // namespace
}  // namespace fovea
