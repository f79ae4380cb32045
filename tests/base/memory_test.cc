// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/memory.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "fovea/base/sanitizer.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0;
}

TEST(AllocateAligned, StartsOnACacheLineWhateverTheSize) {
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 1000u, 1000000u}) {
    const AlignedBytes memory = allocate_aligned(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_TRUE(is_aligned(memory.get()));
    std::memset(memory.get(), 1, bytes);
  }
}

TEST(AllocateAligned, SaysHowMuchItCouldNotHave) {
  EXPECT_THROWS(allocate_aligned(SIZE_MAX), kOutOfMemory, "cannot allocate 18446744073709551615");
  EXPECT_THROWS(allocate_aligned(SIZE_MAX - 70), kOutOfMemory, "cannot allocate");
}

TEST(Arena, GivesAlignedMemoryThatDoesNotOverlap) {
  Arena arena;
  float* const a = arena.allocate<float>(3);
  double* const b = arena.allocate<double>(100000);
  char* const c = arena.allocate<char>(1);
  for (const void* memory : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c)}) {
    EXPECT_TRUE(is_aligned(memory));
  }
  std::fill_n(a, 3, 1.0f);
  std::fill_n(b, 100000, 2.0);
  *c = 'c';
  EXPECT_EQ(a[2], 1.0f);
  EXPECT_EQ(b[0] + b[99999], 4.0);
}

TEST(Arena, GivesTheSameMemoryAgainAfterARelease) {
  Arena arena;
  arena.allocate<float>(10);
  const Arena::Mark mark = arena.mark();
  float* const first = arena.allocate<float>(100);
  arena.allocate<float>(1000000);
  arena.release(mark);
  EXPECT_EQ(arena.allocate<float>(100), first);
}

TEST(Arena, HasOneBlockAfterAResetAndThenAllocatesNothing) {
  Arena arena;
  const auto step = [&] {
    for (const index n : {100, 50000, 3, 200000, 7, 1000000, 5}) arena.allocate<float>(n);
  };
  step();
  EXPECT_GT(arena.capacity(), arena.peak());
  arena.reset();
  const std::size_t capacity = arena.capacity();
  EXPECT_EQ(capacity, arena.peak());
  float* const start = arena.allocate<float>(0);
  for (int round = 0; round < 3; ++round) {
    step();
    EXPECT_EQ(arena.capacity(), capacity);
    EXPECT_LE(arena.allocate<float>(0) - start, static_cast<index>(capacity / sizeof(float)));
    arena.reset();
    EXPECT_EQ(arena.allocate<float>(0), start);
  }
}

TEST(Arena, PeakIsTheMostThatWasInUseAtOnce) {
  Arena arena;
  const Arena::Mark start = arena.mark();
  for (int i = 0; i < 5; ++i) {
    arena.allocate<std::byte>(6400);
    arena.release(start);
  }
  EXPECT_EQ(arena.peak(), 6400u);
  arena.allocate<std::byte>(64);
  arena.allocate<std::byte>(12800);
  EXPECT_EQ(arena.peak(), 12864u);
  arena.reset();
  EXPECT_EQ(arena.peak(), 12864u);
}

TEST(Arena, TheEndOfABlockIntoWhichABufferDidNotFitIsNotInUse) {
  constexpr index kBytes = 100'000, kCount = 9;
  Arena arena;
  for (index i = 0; i < kCount; ++i) arena.allocate<std::byte>(kBytes);
  constexpr std::size_t kRounded = (kBytes + kAlignment - 1) / kAlignment * kAlignment;
  EXPECT_EQ(arena.peak(), kCount * kRounded);
  arena.reset();
  EXPECT_EQ(arena.capacity(), kCount * kRounded);
  for (index i = 0; i < kCount; ++i) arena.allocate<std::byte>(kBytes);
  EXPECT_EQ(arena.capacity(), kCount * kRounded);
}

TEST(Arena, RefusesSizesThatCannotBe) {
  Arena arena;
  EXPECT_THROWS(arena.allocate<float>(-1), kShape, "cannot allocate -1 values");
  EXPECT_THROWS(arena.allocate<float>(INT64_MAX / 2), kShape, "too large to count");
  EXPECT_THROWS(arena.allocate<char>(INT64_MAX), kOutOfMemory, "cannot allocate");
  EXPECT_NE(arena.allocate<float>(10), nullptr) << "works on after a refusal";
}

TEST(Arena, MovesWithItsMemory) {
  Arena from;
  from.allocate<float>(100000);
  from.allocate<float>(1000000);
  const std::size_t capacity = from.capacity();
  Arena to = std::move(from);
  EXPECT_EQ(to.capacity(), capacity);
  Arena assigned;
  assigned = std::move(to);
  EXPECT_EQ(assigned.capacity(), capacity);
  // An arena that was moved from is empty.
  std::fill_n(from.allocate<float>(100), 100, 1.0f);
}

TEST(Scratch, NestsAndGivesBack) {
  float* first = nullptr;
  {
    Scratch outer;
    first = outer.allocate<float>(100);
    std::fill_n(first, 100, 1.0f);
    for (int i = 0; i < 3; ++i) {
      Scratch inner;
      std::fill_n(inner.allocate<float>(500000), 500000, 2.0f);
    }
    EXPECT_EQ(first[99], 1.0f);
  }
  {
    Scratch joins_the_blocks;
    first = joins_the_blocks.allocate<float>(100);
  }
  Scratch again;
  EXPECT_EQ(again.allocate<float>(100), first);
}

TEST(Scratch, BelongsToItsThread) {
  Scratch mine;
  float* const here = mine.allocate<float>(16);
  std::fill_n(here, 16, 1.0f);
  std::thread([] {
    Scratch theirs;
    std::fill_n(theirs.allocate<float>(16), 16, 2.0f);
  }).join();
  EXPECT_EQ(here[0], 1.0f);
}

#if defined(FOVEA_ADDRESS_SANITIZER)
TEST(ArenaDeathTest, MemoryGivenBackIsPoisoned) {
  EXPECT_DEATH(
      {
        Arena arena;
        float* const values = arena.allocate<float>(16);
        arena.reset();
        values[3] = 1;
      },
      "use-after-poison");
}
#endif

}  // namespace
}  // namespace fovea
