// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/machine.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <vector>

#include "fovea/base/sanitizer.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Machine, NamesTheProcessor) {
  EXPECT_THAT(processor_name(), testing::Not(testing::IsEmpty()));
}

TEST(Machine, CachesHaveSizesThatGrowWithTheirLevel) {
  std::int64_t before = 0;
  for (const Cache& cache : caches()) {
    if (cache.kind == "Instruction") continue;
    EXPECT_GT(cache.bytes, before);
    EXPECT_GE(cache.shared_by, 1);
    before = cache.bytes;
  }
}

TEST(Machine, AvailableMemoryIsPartOfAll) {
  EXPECT_GT(available_memory().bytes, 0);
  EXPECT_LT(available_memory().bytes, total_memory_bytes());
}

TEST(Machine, PeakMemoryCountsWhatWasTouched) {
  constexpr std::int64_t kBytes = 64 << 20;
  const std::vector<char> touched(kBytes, 'x');
  EXPECT_EQ(touched.back(), 'x');
  EXPECT_GE(resident_memory_bytes(), kBytes);
  EXPECT_GE(peak_memory_bytes(), resident_memory_bytes());
}

TEST(Machine, WhatGrowsAsksBeforeItTakesTheRest) {
  GrowingMemory memory("a text", "use less");
  memory.grow_to(1000);
  memory.grow_to(1 << 30);
  const auto error = error_of([&] { memory.grow_to(1e18); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(error->hint(), "use less");
}

#if !defined(FOVEA_ADDRESS_SANITIZER) && !defined(FOVEA_THREAD_SANITIZER)  // which map terabytes
TEST(Machine, AddressSpaceLimitIsRespected) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  struct rlimit low = before;
  low.rlim_cur = rlim_t{1} << 30;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &low), 0);
  const MemoryLimit limit = available_memory();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(limit.reason, "ulimit -v");
  EXPECT_LE(limit.bytes, std::int64_t{1} << 30);
}
#endif

}  // namespace
}  // namespace fovea
