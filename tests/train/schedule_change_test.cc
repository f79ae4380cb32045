// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/train/schedule.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

// A cosine from 1e-3 to 1e-4 over 2000 updates, and what it is made into after `step` of them.
template <class Change>
std::string change_at(index step, Change change) {
  const TrainOptions before;
  TrainOptions now = before;
  change(now);
  return schedule_change(before, now, 100, {.step = step, .seconds = 60});
}

TEST(ScheduleChange, NothingIsSaidWhereNothingChanges) {
  EXPECT_EQ(change_at(1000, [](TrainOptions&) {}), "");
  EXPECT_EQ(change_at(50, [](TrainOptions& o) { o.stop_after = "4000u"; }), "") << "warming up";
  EXPECT_EQ(change_at(1000, [](TrainOptions& o) { o.stop_after = "20e"; }), "") << "as long";
}

TEST(ScheduleChange, ALongerRunJumpsAndIsToldHowNotTo) {
  EXPECT_EQ(change_at(2000, [](TrainOptions& o) { o.stop_after = "4000u"; }),
            "the schedule changes: learning rate 0.0001 -> 0.000568 at update 2001; without that "
            "jump: --schedule constant --lr 0.0001, or --schedule wsd --lr 0.0001 --min-lr 1e-05");
  EXPECT_EQ(change_at(1000, [](TrainOptions& o) { o.stop_after = "4000u"; }),
            "the schedule changes: learning rate 0.000587 -> 0.000887 at update 1001; without that "
            "jump: --schedule constant --lr 0.000587, or --schedule wsd --lr 0.000587");
}

TEST(ScheduleChange, WaysThatWouldJumpAreNotOffered) {
  const std::string text = change_at(2000, [](TrainOptions& o) { o.stop_after = "2100u"; });
  EXPECT_THAT(text, HasSubstr("--schedule constant --lr 0.0001"));
  EXPECT_THAT(text, Not(HasSubstr("wsd"))) << "its decay would have begun";
}

TEST(ScheduleChange, NoWayGoesOnFromZero) {
  TrainOptions before;
  before.min_lr = 0;
  TrainOptions now = before;
  now.stop_after = "4000u";
  const std::string text = schedule_change(before, now, 100, {.step = 2000, .seconds = 60});
  EXPECT_THAT(text, HasSubstr("learning rate 0 -> "));
  EXPECT_THAT(text, Not(HasSubstr("--lr")));
}

TEST(ScheduleChange, AJumpThatWasAskedForIsToldAlone) {
  EXPECT_EQ(change_at(2000,
                      [](TrainOptions& o) {
                        o.stop_after = "4000u";
                        o.lr = 2e-3;
                      }),
            "the schedule changes: learning rate 0.0001 -> 0.00109 at update 2001");
}

// A schedule that is offered keeps its promise.
TEST(ScheduleChange, TheWaysGoOnFromWhatWasReached) {
  EXPECT_EQ(change_at(2000,
                      [](TrainOptions& o) {
                        o.stop_after = "4000u";
                        o.schedule = ScheduleKind::kConstant;
                        o.lr = 1e-4;
                      }),
            "");
  EXPECT_EQ(change_at(2000,
                      [](TrainOptions& o) {
                        o.stop_after = "4000u";
                        o.schedule = ScheduleKind::kWsd;
                        o.lr = 1e-4;
                        o.min_lr = 1e-5;
                      }),
            "");
}

}  // namespace
}  // namespace fovea
