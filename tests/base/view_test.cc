// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/view.h"

#include <gmock/gmock.h>

#include <array>
#include <numeric>
#include <span>
#include <vector>

namespace fovea {
namespace {

std::vector<float> counted(index n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(Vec, IsARangeOverSomebodyElsesMemory) {
  auto values = counted(4);
  const Vec<float> view{values.data(), 4};
  view[2] = 20;
  const Vec<const float> constant = view;
  EXPECT_THAT(std::vector<float>(constant.begin(), constant.end()),
              testing::ElementsAre(0, 1, 20, 3));
  EXPECT_FALSE(view.empty());
  EXPECT_TRUE(Vec<float>().empty());
}

TEST(Vec, IsMadeOfWhateverHoldsItsValues) {
  std::vector<float> values = counted(4);
  const std::vector<float> constant = values;
  std::array<float, 2> two = {};
  const float three[] = {1, 2, 3};
  const auto size = [](Vec<const float> view) { return view.size; };
  EXPECT_EQ(Vec<float>(values).data, values.data());
  EXPECT_EQ(size(values), 4);
  EXPECT_EQ(size(constant), 4);
  EXPECT_EQ(size(two), 2);
  EXPECT_EQ(size(three), 3);
  EXPECT_EQ(size(std::span<const float>(three, 2)), 2) << "a span may be a temporary";
}

TEST(Rows, LieAStrideApart) {
  auto values = counted(12);
  const Rows<float> dense(values.data(), 3, 4);
  const Rows<const float> padded = Rows<float>(values.data(), 3, 2, 4);
  EXPECT_EQ(dense[2][3], 11);
  EXPECT_EQ(padded[2][1], 9);
  EXPECT_TRUE(dense.contiguous());
  EXPECT_FALSE(padded.contiguous());
  EXPECT_TRUE(padded.slice(1, 2).contiguous());
}

TEST(Rows, AreCutByRowsAndByColumns) {
  auto values = counted(12);
  const Rows<float> all(values.data(), 3, 4);
  const Rows<float> part = all.slice(1, 3).columns_slice(2, 4);
  EXPECT_EQ(part.rows, 2);
  EXPECT_EQ(part.columns, 2);
  EXPECT_EQ(part[0][0], 6);
  EXPECT_EQ(part[1][1], 11);
}

}  // namespace
}  // namespace fovea
