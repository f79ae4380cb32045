// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "fovea/attention/relative/shaw.h"
#include "tests/support/throws.h"

namespace fovea::detail {
namespace {

// s = 2: five rows, one for each distance from -2 to 2, and what lies beyond has the last ones.
TEST(ShawTable, RowsAreThoseOfTheClippedDistance) {
  const std::vector<double> values(5 * 3);
  const Rows<const double> rows(values.data(), 5, 3);
  const ShawTable<double> ahead{rows, {}, ShawOrder::kKeyMinusQuery};
  const ShawTable<double> behind{rows};
  EXPECT_EQ(behind.clip(), 2);
  EXPECT_EQ(behind.order, ShawOrder::kQueryMinusKey) << "i-j is the default";
  const std::vector<index> expected = {0, 0, 0, 1, 2, 3, 4, 4, 4};
  for (index distance = -4; distance <= 4; ++distance) {
    EXPECT_EQ(ahead.row_at(distance), expected[static_cast<std::size_t>(distance + 4)]);
    EXPECT_EQ(behind.row_at(distance), expected[static_cast<std::size_t>(4 - distance)]);
  }
  const Sequence sequence{.queries = 3, .keys = 5};
  EXPECT_EQ(behind.row_of({sequence, 0, 0, 1}), 3) << "query 0 stands at key 2";
  EXPECT_EQ(ahead.row_of({sequence, 0, 0, 1}), 1);
  const ShawTable<double> one{Rows<const double>(values.data(), 1, 3)};
  EXPECT_EQ(one.row_at(7), 0);
}

TEST(ShawTable, TheGradientIsTheSumOverHeads) {
  const std::vector<double> values(3 * 2);
  std::vector<double> gradient(3 * 4, -1), sums(2 * 6);
  for (std::size_t n = 0; n < sums.size(); ++n) sums[n] = static_cast<double>(n * n);
  const ShawTable<double> table{Rows<const double>(values.data(), 3, 2),
                                Rows<double>(gradient.data(), 3, 2, 4)};
  ASSERT_EQ(table.gradient_size(), 6);
  table.store_gradient(sums.data(), 2);
  for (std::size_t n = 0; n < 6; ++n) {
    EXPECT_EQ(gradient[n / 2 * 4 + n % 2], sums[n] + sums[6 + n]);
    EXPECT_EQ(gradient[n / 2 * 4 + 2 + n % 2], -1) << "between the rows nothing";
  }
  const ShawTable<double> constant{table.rows};
  EXPECT_EQ(constant.gradient_size(), 0);
}

TEST(ShawTable, NamesWhatDoesNotFit) {
  std::vector<float> x(100), dx(100);
  const auto table = [&](index rows, index W, Rows<float> dtable = {}) {
    return ShawTable<float>{Rows<const float>(x.data(), rows, W), dtable};
  };
  table(5, 4).check_rows();
  table(5, 4, {dx.data(), 5, 4}).check_width("D", 4);
  EXPECT_THROWS(table(4, 4).check_rows(), kShape,
                "the table must have 2s+1 rows, an odd number; it has 4");
  EXPECT_THROWS(table(0, 4).check_rows(), kShape, "it has 0");
  EXPECT_THROWS(table(5, 4).check_width("D", 6), kShape,
                "attention: the table of shaw must be [2s+1, D=6]; it is [5, 4]");
  EXPECT_THROWS(table(5, 4).check_width("D", 5), kShape, "the score concat makes rows of D + 1");
  EXPECT_THROWS(table(5, 4, {dx.data(), 3, 4}).check_width("Dv", 4), kShape,
                "dtable of shaw must be [5, Dv=4] or empty; it is [3, 4]");
  const ShawTable<float> nothing{Rows<const float>(nullptr, 5, 4)};
  EXPECT_THROWS(nothing.check_width("D", 4), kShape, "but no data");
}

}  // namespace
}  // namespace fovea::detail
