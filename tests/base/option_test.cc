// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/option.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Option, IsNamedAsItIsTyped) {
  EXPECT_EQ(option_name("lr"), "--lr");
  EXPECT_EQ(option_name("model.head_dim"), "--head-dim");
}

TEST(Option, SaysValueAndRule) {
  EXPECT_NO_THROW(require_option(true, "kv_heads", std::int64_t{0}, "at least 0"));
  const auto error = error_of(
      [] { require_option(false, "kv_heads", std::int64_t{8}, "at most --heads ({})", 4); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOptionValue);
  EXPECT_STREQ(error->what(), "--kv-heads: 8 is not at most --heads (4)");
  EXPECT_EQ(error->hint(), "--help says what --kv-heads is for, and what it is if left out");
}

TEST(Option, MayHaveAHintOfItsOwn) {
  const auto error = error_of([] {
    require_option(false, Hint{"choose more --heads"}, "kv_heads", std::int64_t{8}, "at most {}",
                   4);
  });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "--kv-heads: 8 is not at most 4");
  EXPECT_EQ(error->hint(), "choose more --heads");
}

TEST(Option, WhatIsNotFiniteIsNeverFine) {
  EXPECT_THROWS(require_option(true, "lr", std::nan(""), "a number"), kOptionValue, "--lr: nan");
  EXPECT_THROWS(require_option(true, "lr", -INFINITY, "a number"), kOptionValue, "--lr: -inf");
}

struct Entry {
  std::string_view name;
};
constexpr std::array kTable = {Entry{"blocks"}, Entry{"lines"}};

TEST(Option, TablesAreSearchedByName) {
  EXPECT_EQ(find_named(kTable, "lines"), &kTable[1]);
  EXPECT_EQ(find_named(kTable, "line"), nullptr);
  EXPECT_EQ(names_in(kTable, "|"), "blocks|lines");
  EXPECT_EQ(&choose(kTable, "blocks", "data"), &kTable[0]);
  EXPECT_THROWS(choose(kTable, "a\nb", "text.data"), kOptionValue,
                "--data: expected one of: blocks, lines; got 'a\\x0ab'");
}

TEST(Option, NumbersStandBetweenSeparators) {
  EXPECT_THAT(parse_numbers("3:-4", ':'), testing::ElementsAre(3, -4));
  for (const char* text : {"", ":", "3:", ":3", "3::4", "3,4", "x"}) {
    EXPECT_TRUE(parse_numbers(text, ':').empty()) << text;
  }
}

}  // namespace
}  // namespace fovea
