// SPDX-License-Identifier: Apache-2.0
#include "fovea/simd/peak.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/isa.h"

namespace fovea {
namespace {

// No time is asserted: only that every set has a loop, and that it counts what it did.
TEST(Peak, EverySetHasALoopThatCounts) {
  for_each_isa([] {
    const double rate = fma_gflops(Context(1), 0.002);
    EXPECT_TRUE(std::isfinite(rate));
    EXPECT_GT(rate, 0.0);
  });
}

TEST(Peak, HasALoopForEachPrecision) {
  const Context context = Context(1).with(Precision::kBFloat16);
  for_each_isa([&] { EXPECT_GT(peak_gflops(context, 0.002), 0.0); });
  if (!has_bfloat16_products()) GTEST_SKIP() << "the processor has none";
  EXPECT_GT(peak_gflops(context, 0.002), 0.0);
  EXPECT_GT(bfloat16_gflops(Context(1), 0.002), 0.0);
}

TEST(Peak, TheLoopRunsOnTheSetThatIsPinned) {
  for (const Isa isa : available_isas()) {
    pin_isa(isa);
    EXPECT_EQ(compiled_isa(), isa);
  }
  unpin_isa();
}

TEST(Peak, TheBestOfSeveralCounts) { EXPECT_GT(best_peak_gflops(Context(2)), 0.0); }

}  // namespace
}  // namespace fovea
