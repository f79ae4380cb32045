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

TEST(Words, OfAShell) {
  EXPECT_EQ(shell_word("runs/a_1.txt"), "runs/a_1.txt");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\"'\"'s'");
  EXPECT_EQ(shell_word("狐狸"), "'狐狸'");
}

}  // namespace
}  // namespace fovea
