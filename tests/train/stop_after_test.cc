// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/train/options.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(StopAfter, ReadsNumberAndUnit) {
  EXPECT_EQ(parse_length("10e", "x").unit, LengthUnit::kEpochs);
  EXPECT_EQ(parse_length("10e", "x").value, 10);
  EXPECT_EQ(parse_length("5000u", "x").unit, LengthUnit::kUpdates);
  EXPECT_EQ(parse_length("5000", "x").value, 5000);
  EXPECT_EQ(parse_length("2h", "x").unit, LengthUnit::kHours);
  EXPECT_EQ(parse_length("30m", "x").value, 0.5);
  EXPECT_EQ(parse_length("1800s", "x").value, 0.5);
  EXPECT_EQ(parse_length("0.5e", "x").value, 0.5);
}

TEST(StopAfter, RefusesWhatIsNoLength) {
  for (const char* text :
       {"", "u", "0u", "-3u", "1.5u", "10x", "10 u", "nan", "inf", "1e999u", "2hh"}) {
    EXPECT_THROWS(parse_length(text, "--stop-after"), kOptionValue, "--stop-after");
  }
}

// "1e5" could be an epoch and a stray 5, or a number of updates: a number it is.
TEST(StopAfter, ReadsNumbersWithExponents) {
  EXPECT_EQ(parse_length("1e5", "x").value, 1e5);
  EXPECT_EQ(parse_length("1e5", "x").unit, LengthUnit::kUpdates);
}

TEST(StopAfter, EpochsBecomeWholeUpdates) {
  EXPECT_EQ(to_updates(parse_length("2e", "x"), 7, "x"), 14);
  EXPECT_EQ(to_updates(parse_length("0.5e", "x"), 7, "x"), 4);
  EXPECT_THROWS(to_updates(parse_length("1h", "x"), 7, "x"), kOptionValue, "a time cannot");
  EXPECT_THROWS(to_updates(parse_length("1e16", "x"), 7, "x"), kOptionValue, "too many");
  EXPECT_THROWS(to_updates(parse_length("999999999e", "x"), 99999999, "x"), kOptionValue,
                "too many");
}

TEST(StopAfter, HorizonByUpdatesDoesNotLookAtTheClock) {
  const Horizon horizon(parse_length("10u", "x"), 1);
  EXPECT_FALSE(horizon.reached(9, 1e9));
  EXPECT_TRUE(horizon.reached(10, 0));
  EXPECT_EQ(horizon.fraction(5, 77), 0.5);
}

TEST(StopAfter, HorizonByHoursLooksAtNothingElse) {
  const Horizon horizon(parse_length("1h", "x"), 1);
  EXPECT_TRUE(horizon.in_hours());
  EXPECT_EQ(horizon.updates(), 0);
  EXPECT_FALSE(horizon.reached(1000000, 3599));
  EXPECT_TRUE(horizon.reached(1, 3600));
}

}  // namespace
}  // namespace fovea
