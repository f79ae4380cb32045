// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/over_time.h"
#include "fovea/reference/convolution.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);
const std::vector<std::int32_t> kOffsets = {0, 0, 1, 4, 4, 19, 20};

// No arithmetic but comparisons: the same bits as the loops.
template <class T>
void expect_plain_loops(Matrix<T> x) {
  Random random(57, RandomUse::kTest);
  const index C = x.columns();
  const auto dy = Matrix<T>::random(random, 6, C);
  Matrix<T> plain(6, C), plain_dx(20, C), y(6, C, 5), dx(20, C, 5);
  reference::max_over_time_forward(x.in(), kOffsets, plain.view());
  reference::max_over_time_backward<T>({x.in(), plain.in(), dy.in(), kOffsets, plain_dx.view()});
  max_over_time_forward(kContext, x.in(), kOffsets, y.view());
  max_over_time_backward<T>(kContext, {x.in(), y.in(), dy.in(), kOffsets, dx.view()});
  EXPECT_TRUE(y == plain) << C;
  EXPECT_TRUE(dx == plain_dx) << C;
}

TEST(MaxOverTime, IsThatOfPlainLoops) {
  for_each_isa([] {
    Random random(58, RandomUse::kTest);
    for (const index C : kColumns) {
      expect_plain_loops(Matrix<float>::random(random, 20, C));
      expect_plain_loops(Matrix<double>::random(random, 20, C));
    }
  });
}

TEST(MaxOverTime, OfEqualRowsTheFirstGetsTheGradient) {
  for_each_isa([] {
    Random random(59, RandomUse::kTest);
    auto x = Matrix<float>::random(random, 20, 33);
    for (index n = 0; n < 20; ++n)
      for (index c = 0; c < 33; ++c) x.at(n, c) = std::round(x.at(n, c));
    expect_plain_loops(x);
    const std::int32_t offsets[] = {0, 3};
    float ties[] = {1, 2, 2}, one[] = {7}, most[1], dx[3];
    max_over_time_forward<float>(kContext, Rows<const float>(ties, 3, 1), offsets, {most, 1, 1});
    max_over_time_backward<float>(kContext,
                                  {{ties, 3, 1}, {most, 1, 1}, {one, 1, 1}, offsets, {dx, 3, 1}});
    EXPECT_THAT(dx, testing::ElementsAre(0, 7, 0));
  });
}

TEST(MaxOverTime, StaysNotANumberAndGivesItsFirstTheGradient) {
  for_each_isa([] {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::int32_t offsets[] = {0, 4};
    float x[] = {9, nan, 10, nan}, one[] = {7}, most[1], dx[4];
    max_over_time_forward<float>(kContext, Rows<const float>(x, 4, 1), offsets, {most, 1, 1});
    max_over_time_backward<float>(kContext,
                                  {{x, 4, 1}, {most, 1, 1}, {one, 1, 1}, offsets, {dx, 4, 1}});
    EXPECT_TRUE(std::isnan(most[0]));
    EXPECT_THAT(dx, testing::ElementsAre(0, 7, 0, 0));
  });
}

TEST(MaxOverTime, SameBitsForAnyNumberOfThreads) {
  Random random(60, RandomUse::kTest);
  const auto x = Matrix<float>::random(random, 900, 600);
  const std::int32_t offsets[] = {0, 10, 500, 500, 900};
  expect_same_for_threads([&](const Context& ctx) {
    Matrix<float> y(4, 600);
    max_over_time_forward(ctx, x.in(), offsets, y.view());
    return y;
  });
}

TEST(MaxOverTime, NamesTheShapesInItsErrors) {
  Matrix<float> x(4, 5), y(2, 5);
  const std::int32_t offsets[] = {0, 2, 3};
  EXPECT_THROWS(max_over_time_forward(kContext, x.in(), offsets, y.view()), kShape,
                "max_over_time: 2 sequences of 4 rows need 3 offsets from 0 to 4; got 3");
}

}  // namespace
}  // namespace fovea
