// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/options.h"

#include <gmock/gmock.h>

#include <set>

#include "fovea/parts/part_table.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<std::string_view> position_names() {
  std::vector<std::string_view> names;
  for (const auto& [kind, name] : enum_names(PositionKind{})) names.push_back(name);
  return names;
}

TEST(PositionKind, HasEveryPositionOfTheTable) {
  const auto names = position_names();
  EXPECT_EQ(names.front(), "learned");
  EXPECT_EQ(names.back(), "none");
  std::size_t parts = 0;
  for (const AttentionPart& part : attention_parts()) {
    if (part.position.empty()) continue;
    ++parts;
    const auto kind = enum_from_name<PositionKind>(part.position);
    EXPECT_EQ(to_string(kind), part.position);
    EXPECT_EQ(part_of(kind), &part);
    EXPECT_EQ(part_tensor(kind), part.tensor);
  }
  EXPECT_EQ(names.size(), parts + 4);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
}

TEST(PositionKind, ShawLearnsKeysAndValuesOrKeysAlone) {
  const auto shaw = enum_from_name<PositionKind>("shaw");
  const auto keys = enum_from_name<PositionKind>("shaw-keys");
  EXPECT_TRUE(learns_tensor(shaw, "shaw_k") && learns_tensor(shaw, "shaw_v"));
  EXPECT_TRUE(learns_tensor(keys, "shaw_k"));
  EXPECT_FALSE(learns_tensor(keys, "shaw_v"));
  EXPECT_FALSE(learns_tensor(PositionKind::kNone, "shaw_k"));
}

TEST(PositionKind, ListsTheNewestFirst) {
  std::vector<std::string_view> known;
  for (const std::string_view name : position_names()) {
    if (name == "alibi" || name == "kerple" || name == "t5" || name == "shaw")
      known.push_back(name);
  }
  EXPECT_THAT(known, testing::ElementsAre("alibi", "kerple", "t5", "shaw"));
}

TEST(PositionKind, IsNoPartOtherwise) {
  for (const auto kind : {PositionKind::kLearned, PositionKind::kSinusoidal, PositionKind::kRotary,
                          PositionKind::kNone}) {
    EXPECT_EQ(part_of(kind), nullptr);
    EXPECT_EQ(part_tensor(kind), "");
  }
  EXPECT_THROWS(enum_from_name<PositionKind>("t6"), kOptionValue, "'t6' is not one of: learned, ");
}

}  // namespace
}  // namespace fovea
