// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>

#include "fovea/base/words.h"

namespace fovea {
namespace {

TEST(SizeText, TakesTheLargestUnitThatFits) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1024), "1.00 KiB");
  EXPECT_EQ(size_text(32 << 10), "32.0 KiB");
  EXPECT_EQ(size_text(859.2 * (1 << 20)), "859 MiB");
  EXPECT_EQ(size_text(std::int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(size_text(std::uint64_t{1} << 46), "64.0 TiB");
  EXPECT_EQ(size_text(0x1p70), "1024 EiB");
}

TEST(SizeText, RoundsIntoTheNextUnit) {
  EXPECT_EQ(size_text((std::int64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(size_text(9.996 * 1024), "10.0 KiB");
  EXPECT_EQ(size_text(99.96 * 1024), "100 KiB");
}

}  // namespace
}  // namespace fovea
