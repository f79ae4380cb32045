// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fovea {
namespace {

double rate(ScheduleKind kind, index step, index warmup = 10) {
  const TrainOptions options{.lr = 1.0, .min_lr = 0.1, .schedule = kind, .warmup = warmup};
  return learning_rate(options, Horizon(parse_length("110u", "x"), 1), step, 0);
}

TEST(Schedule, WarmsUpToTheRate) {
  for (const auto& [kind, name] : kScheduleKindNames) {
    EXPECT_DOUBLE_EQ(rate(kind, 0), 0.1) << name;
    EXPECT_DOUBLE_EQ(rate(kind, 4), 0.5) << name;
    EXPECT_DOUBLE_EQ(rate(kind, 9), 1.0) << name;
  }
}

TEST(Schedule, CosineFallsToTheMinimum) {
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kCosine, 10), 1.0);
  EXPECT_NEAR(rate(ScheduleKind::kCosine, 60), 0.55, 1e-12);
  EXPECT_NEAR(rate(ScheduleKind::kCosine, 35), 0.1 + 0.9 * 0.5 * (1 + 0.70710678118654752), 1e-12);
  EXPECT_NEAR(rate(ScheduleKind::kCosine, 110), 0.1, 1e-12);
  EXPECT_NEAR(rate(ScheduleKind::kCosine, 1000), 0.1, 1e-12);
}

TEST(Schedule, LinearFallsToTheMinimum) {
  EXPECT_NEAR(rate(ScheduleKind::kLinear, 35), 0.775, 1e-12);
  EXPECT_NEAR(rate(ScheduleKind::kLinear, 110), 0.1, 1e-12);
}

TEST(Schedule, InverseSquareRootGoesWithTheStep) {
  EXPECT_NEAR(rate(ScheduleKind::kInverseSqrt, 39), 0.5, 1e-12);
  EXPECT_NEAR(rate(ScheduleKind::kInverseSqrt, 99999), 0.1, 1e-12);
}

TEST(Schedule, ConstantStays) { EXPECT_DOUBLE_EQ(rate(ScheduleKind::kConstant, 109), 1.0); }

// 110 updates: the last fifth are those from 88 on.
TEST(Schedule, WsdIsStableAndThenDecays) {
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kWsd, 10), 1.0);
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kWsd, 87), 1.0);
  EXPECT_NEAR(rate(ScheduleKind::kWsd, 88), 1.0, 1e-7) << "the root of a rounding error";
  EXPECT_NEAR(rate(ScheduleKind::kWsd, 99), 0.1 + 0.9 * (1 - 0.70710678118654752), 1e-12);
  EXPECT_NEAR(rate(ScheduleKind::kWsd, 110), 0.1, 1e-12);
  EXPECT_NEAR(rate(ScheduleKind::kWsd, 1000), 0.1, 1e-12);
  const TrainOptions options{.lr = 1, .schedule = ScheduleKind::kWsd, .warmup = 0};
  const Horizon horizon(parse_length("1h", "x"), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, horizon, 5, 2000), 1);
  EXPECT_NEAR(learning_rate(options, horizon, 5, 3240), 1 - (1 - 1e-4) * std::sqrt(0.5), 1e-12);
}

TEST(Schedule, WithoutWarmupBeginsAtTheRate) {
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kCosine, 0, 0), 1.0);
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kInverseSqrt, 0, 0), 1.0);
}

TEST(Schedule, WarmupMayOutlastTheRun) {
  EXPECT_DOUBLE_EQ(rate(ScheduleKind::kCosine, 109, 200), 0.55);
}

TEST(Schedule, ByHoursFollowsTheClock) {
  const TrainOptions options{.lr = 1, .min_lr = 0, .schedule = ScheduleKind::kLinear, .warmup = 0};
  const Horizon horizon(parse_length("1h", "x"), 1);
  EXPECT_NEAR(learning_rate(options, horizon, 5, 900), 0.75, 1e-12);
  EXPECT_NEAR(learning_rate(options, horizon, 5, 7200), 0, 1e-12);
}

TEST(Schedule, SaysIfTheWarmupTakesMostOfTheRun) {
  EXPECT_EQ(warmup_note(50, 100), "");
  EXPECT_EQ(warmup_note(51, 100),
            "the learning rate rises for 51 of the 100 updates; --warmup 10 would be a tenth of "
            "them");
  EXPECT_EQ(warmup_note(1000, 5),
            "the learning rate rises for 5 of the 5 updates; --warmup 1 would be a tenth of them");
  EXPECT_EQ(warmup_note(10, 0), "") << "the length is not known";
}

}  // namespace
}  // namespace fovea
