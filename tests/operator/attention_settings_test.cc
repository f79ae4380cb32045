// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_settings.h"

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
  const auto wishes = parse_observe("entropy,topk=8,rows=1:2");
  ASSERT_EQ(wishes.size(), 3u);
  EXPECT_EQ(wishes[0].name, "entropy");
  EXPECT_EQ(wishes[0].value, "");
  EXPECT_EQ(wishes[1].name, "topk");
  EXPECT_EQ(wishes[1].value, "8");
  EXPECT_EQ(wishes[2].value, "1:2");
  EXPECT_EQ(parse_observe(",a").front().name, "");
  EXPECT_EQ(parse_observe("a,").back().name, "");
  EXPECT_TRUE(parse_observe("").empty());
  EXPECT_THROWS(parse_observe("a,b,a=2"), kOptionValue, "--observe: 'a,b,a=2'");
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
