// SPDX-License-Identifier: Apache-2.0
#include "fovea/simd/prefetch.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

index lines_of(Prefetch& ahead) {
  index lines = 0;
  for (int now = ahead.step(); now > 0; now = ahead.step()) lines += now;
  return lines;
}

TEST(Prefetch, AsksForEveryLineOnce) {
  std::vector<float> values(1000);
  Prefetch ahead;
  EXPECT_EQ(ahead.step(), 0);
  ahead.add(Rows<float>(values.data(), 10, 32, 100));       // 128 bytes: 2 lines each
  ahead.add(Rows<const float>(values.data(), 3, 17, 100));  // 68 bytes: 2 lines
  EXPECT_EQ(lines_of(ahead), 26);
  EXPECT_EQ(ahead.step(), 0);
  ahead.add(Rows<float>(values.data(), 1, 1));
  EXPECT_EQ(lines_of(ahead), 1);
}

// In the middle of a row, at the beginning of the ring, and where it is full.
TEST(Prefetch, WhatIsWantedSoonLeavesNothingOut) {
  std::vector<float> values(1000);
  Prefetch ahead;
  ahead.add(Rows<float>(values.data(), 2, 320));  // 20 lines each
  EXPECT_EQ(ahead.step(), 16);
  ahead.add_soon(Rows<float>(values.data(), 3, 16, 100));
  ahead.add_soon(Rows<const float>(values.data(), 2, 32, 100));
  EXPECT_EQ(lines_of(ahead), 40 - 16 + 3 + 4);
  for (index n = 0; n < 2 * Prefetch::kMostPieces; ++n)
    ahead.add_soon(Rows<float>(values.data(), 1, 1));
  ahead.add(Rows<float>(values.data(), 1, 1));
  EXPECT_EQ(lines_of(ahead), Prefetch::kMostPieces);
  ahead.add_soon(Rows<float>());
  EXPECT_EQ(ahead.step(), 0);
}

TEST(Prefetch, LeavesOutWhatIsNotThere) {
  Prefetch ahead;
  ahead.add(Rows<double>(nullptr, 0, 8));
  ahead.add(Rows<double>(nullptr, 8, 0));
  ahead.add(Rows<double>());
  EXPECT_EQ(ahead.step(), 0);
}

TEST(Prefetch, LeavesOutWhatIsTooMuch) {
  std::vector<float> values(64);
  Prefetch ahead;
  ahead.add(Rows<float>(values.data(), 1 << 20, 64, 0));
  EXPECT_EQ(lines_of(ahead), Prefetch::kMostBytes / 64);
  for (index n = 0; n < 2 * Prefetch::kMostPieces; ++n) ahead.add(Rows<float>(values.data(), 1, 1));
  EXPECT_EQ(lines_of(ahead), Prefetch::kMostPieces);
}

}  // namespace
}  // namespace fovea
