// SPDX-License-Identifier: Apache-2.0
// E13: every layer is timed at every length.
#include <gtest/gtest.h>

#include "tests/experiments/support.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

TEST(ReproduceSpeed, TimesEveryLayerAtEveryLengthAndDrawsIt) {
  const TestFolder folder;
  Measured measured;
  reproduce_speed(Context(2), {.data = {}, .output = folder.path(), .share = 0.01},
                  measured.observer());
  EXPECT_EQ(measured.rows.size(), 8u * 5);
  for (const ReproduceRow& row : measured.rows) EXPECT_GT(*row.ours, 0) << row.variant;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "E13.svg"));
}

TEST(ReproduceSpeed, StopsWhenAsked) {
  const TestFolder folder;
  Measured measured;
  measured.stop_after = 1;
  EXPECT_THROW(reproduce_speed(Context(2), {.data = {}, .output = folder.path(), .share = 0.01},
                               measured.observer()),
               ReproduceStopped);
  EXPECT_EQ(measured.rows.size(), 5u);
}

}  // namespace
}  // namespace fovea
