// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/gradient_sums.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/attention/support/call.h"

namespace fovea::testing {
namespace {

// Tables of two sequences, under heads 0, 1 and 1 alone, come to their heads; the sink's sum stands
// behind that of the slopes.
TEST(GradientSums, AddUpByHead) {
  const std::vector<double> slopes = {1, 2}, sink = {0.5, -1};
  std::vector<double> dslopes(2), dsink(2);
  const Attention<double> attention{
      .bias = bias::Alibi<double>({slopes.data(), 2}, {dslopes.data(), 2}),
      .sink = {{sink.data(), 2}, {dsink.data(), 2}}};
  detail::GradientSums<double> sums(attention, 2);
  EXPECT_EQ(sums.size(), 2);
  EXPECT_EQ(sums.add_tables(0, 2, 2), 0);  // heads 0, 1, 0, 1
  EXPECT_EQ(sums.add_tables(1, 2, 1), 4);
  sums.allocate(Context(1));
  for (index n = 0; n < 5; ++n) {
    sums.table(n)[0] = static_cast<double>(n + 1);
    sums.table(n)[1] = static_cast<double>(10 * (n + 1));
  }
  sums.store();
  EXPECT_THAT(dslopes, ::testing::ElementsAre(1 + 3, 2 + 4 + 5));
  EXPECT_THAT(dsink, ::testing::ElementsAre(10 + 30, 20 + 40 + 50));
  EXPECT_EQ(sums.bytes(), 5 * 2 * sizeof(double));
}

TEST(GradientSums, OfTheSinkIsItsWeightTimesMinusDelta) {
  const std::vector<double> sink = {0.5, -1}, delta = {3, 4};
  std::vector<double> dsink(2);
  const Attention<double> attention{.sink = {{sink.data(), 2}, {dsink.data(), 2}}};
  Call<double> call({.T = 3, .H = 2});
  call.lse = {0, 0, 0, 0, 1, 2};  // [H, T]
  std::fill(call.lse_low.begin(), call.lse_low.end(), 0);
  detail::GradientSums<double> sums(attention, 2);
  sums.add_tables(0, 2, 1);
  sums.allocate(Context(1));
  // The second and third row are a sequence of two queries.
  const Sequence sequence{.query_row = 1, .queries = 2};
  sums.set_sink(1, call.saved(), sequence, delta.data());
  sums.store();
  EXPECT_EQ(dsink[0], 0);
  EXPECT_DOUBLE_EQ(dsink[1], -(std::exp(-1.0 - 1) * 3 + std::exp(-1.0 - 2) * 4));
}

TEST(GradientSums, NothingToSum) {
  const Attention<float> attention;
  detail::GradientSums<float> sums(attention, 2);
  EXPECT_EQ(sums.size(), 0);
  EXPECT_EQ(sums.add_tables(0, 2, 3), 0);
  EXPECT_EQ(sums.bytes(), 0);
  sums.allocate(Context(1));
  sums.store();
}

}  // namespace
}  // namespace fovea::testing
