// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Words, AreFoundWhole) {
  EXPECT_TRUE(has_word("cpu,cpuacct", ',', "cpu"));
  EXPECT_TRUE(has_word("cpu,cpuacct", ',', "cpuacct"));
  EXPECT_FALSE(has_word("cpu,cpuacct", ',', "acct"));
  EXPECT_FALSE(has_word("cpu,cpuacct", ' ', "cpu"));
  EXPECT_TRUE(has_word("memory", ',', "memory"));
  EXPECT_FALSE(has_word("", ',', "memory"));
}

TEST(Words, PartsBetweenSeparators) {
  using testing::ElementsAre;
  EXPECT_THAT(parts_between("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(parts_between("", ','), ElementsAre(""));
  EXPECT_THAT(parts_between("a,", ','), ElementsAre("a", ""));
}

TEST(Words, OfDigits) {
  EXPECT_TRUE(is_all_digits("0"));
  EXPECT_TRUE(is_all_digits("2000"));
  EXPECT_FALSE(is_all_digits(""));
  EXPECT_FALSE(is_all_digits("-1"));
  EXPECT_FALSE(is_all_digits("1e3"));
}

}  // namespace
}  // namespace fovea
