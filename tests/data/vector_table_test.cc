// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/vector_table.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using enum VectorMatch;

TEST(VectorTable, TakesTheBestOfEachWord) {
  const std::vector<std::string> words = {"Paris", "paris", "", "x"};
  VectorTable table(words, 0);
  table.begin(2, "f");
  float next = 0;
  const auto fill = [&](std::span<float> row) {
    for (float& number : row) number = ++next;
  };
  table.take("PARIS", fill);
  table.take("paris", fill);
  table.take("", fill);
  table.take("paris", fill);
  EXPECT_EQ(table.repeated(), 1);
  const WordVectors found = table.take();
  EXPECT_THAT(found.match, ElementsAre(kLower, kExact, kNone, kNone));
  EXPECT_THAT(found.rows, ElementsAre(1, 2, 5, 6, 0, 0, 0, 0));
  EXPECT_EQ(found.count(kNone), 2);
}

TEST(VectorTable, KnowsItsWidth) {
  const std::vector<std::string> words = {"a"};
  VectorTable table(words, 3);
  EXPECT_THROWS(table.begin(2, "f"), kOptionValue,
                "f: its vectors have 2 numbers; the rows of words are to have 3");
  table.begin(3, "f");
  EXPECT_EQ(table.width(), 3);
}

}  // namespace
}  // namespace fovea
