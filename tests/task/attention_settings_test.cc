// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/attention_settings.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(AttentionSettings, AScaleIsANumberOrLeftToTheScore) {
  EXPECT_EQ(parse_scale("auto"), std::nullopt);
  EXPECT_EQ(parse_scale("0.125"), 0.125);
  EXPECT_EQ(parse_scale("-2e-1"), -0.2);
  for (const char* text : {"nan", "inf", "-inf", "1e999", "", "1,5", "0x1p3", "two", " 1"}) {
    EXPECT_THROWS(parse_scale(text), kOptionValue, "--scale: ");
  }
}

TEST(AttentionSettings, AWindowHasTwoSides) {
  EXPECT_EQ(parse_window("3,0").left, 3);
  EXPECT_EQ(parse_window("3,0").right, 0);
  EXPECT_EQ(parse_window("-1,7").left, kOpen);
  EXPECT_EQ(parse_window("").right, kOpen);
  for (const char* text : {"3", "3,", ",3", "3,4,5", "-2,0", "0,-2", "3;4", "1.5,2", "3, 4",
                           "9223372036854775808,0"}) {
    EXPECT_THROWS(parse_window(text), kOptionValue, "--window: ");
  }
}

TEST(AttentionSettings, WhatIsObservedIsAList) {
  EXPECT_THAT(parse_observe("entropy,max"), ElementsAre("entropy", "max"));
  EXPECT_THAT(parse_observe("a"), ElementsAre("a"));
  EXPECT_THAT(parse_observe(",a"), ElementsAre("", "a"));
  EXPECT_TRUE(parse_observe("").empty());
}

TEST(AttentionSettings, RatesAndProbabilitiesHaveBounds) {
  check_settings({});
  EXPECT_THROWS(check_settings({.dilation = 0}), kOptionValue, "--dilation: 0");
  EXPECT_THROWS(check_settings({.strided = -1}), kOptionValue, "--strided: -1");
  EXPECT_THROWS(check_settings({.dropout = 1}), kOptionValue, "--dropout: 1");
  EXPECT_THROWS(check_settings({.dropout = -0.1}), kOptionValue, "--dropout: -0.1");
}

}  // namespace
}  // namespace fovea
