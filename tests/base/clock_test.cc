// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/clock.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

namespace fovea {
namespace {

TEST(Clock, NeverGoesBack) {
  double last = monotonic_seconds();
  for (int i = 0; i < 10000; ++i) {
    const double now = monotonic_seconds();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, CountsSeconds) {
  const double start = monotonic_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double seconds = monotonic_seconds() - start;
  EXPECT_GE(seconds, 0.020);
  EXPECT_LT(seconds, 20.0);
}

}  // namespace
}  // namespace fovea
