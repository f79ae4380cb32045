// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/over_time.h"
#include "fovea/reference/convolution.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);
const std::vector<std::int32_t> kOffsets = {0, 0, 1, 4, 4, 19, 20};

// The sums have the order of the loops, so the bits are the same.
template <class T>
void expect_plain_loops(Random& random, index C) {
  const auto x = Matrix<T>::random(random, 20, C), dy = Matrix<T>::random(random, 6, C);
  Matrix<T> plain(6, C), plain_dx(20, C), y(6, C, 5), dx(20, C, 5);
  reference::mean_over_time_forward(x.in(), kOffsets, plain.view());
  reference::mean_over_time_backward(dy.in(), kOffsets, plain_dx.view());
  mean_over_time_forward(kContext, x.in(), kOffsets, y.view());
  mean_over_time_backward(kContext, dy.in(), kOffsets, dx.view());
  EXPECT_TRUE(y == plain) << C;
  EXPECT_TRUE(dx == plain_dx) << C;
}

TEST(MeanOverTime, IsThatOfPlainLoops) {
  for_each_isa([] {
    Random random(58, RandomUse::kTest);
    for (const index C : kColumns) {
      expect_plain_loops<float>(random, C);
      expect_plain_loops<double>(random, C);
    }
  });
}

TEST(MeanOverTime, MatchesValuesByHand) {
  Matrix<float> x(3, 2), y(2, 2, 7);
  for (index n = 0; n < 3; ++n) x.at(n, 1) = static_cast<float>(n);
  const std::int32_t offsets[] = {0, 0, 3};
  mean_over_time_forward(kContext, x.in(), {offsets, 3}, y.view());
  EXPECT_THAT(y.values(), testing::ElementsAre(0, 0, 0, 1));
}

TEST(MeanOverTime, ASequenceAloneHasTheBitsOfOneAmongOthersForAnyNumberOfThreads) {
  for_each_isa([] {
    Random random(60, RandomUse::kTest);
    const auto x = Matrix<float>::random(random, 20, 300);
    const auto pooled = [&](int threads, std::vector<std::int32_t> offsets, index first) {
      const index count = static_cast<index>(offsets.size()) - 1;
      Matrix<float> y(count, 300);
      mean_over_time_forward(Context(threads), x.in().slice(first, first + offsets.back()), offsets,
                             y.view());
      return y;
    };
    const auto all = pooled(1, kOffsets, 0);
    for (const int threads : {2, 3, 8}) EXPECT_TRUE(pooled(threads, kOffsets, 0) == all);
    const auto alone = pooled(2, {0, 15}, 4);
    for (index c = 0; c < 300; ++c) EXPECT_EQ(alone.at(0, c), all.at(4, c));
  });
}

TEST(MeanOverTime, OffsetsThatDoNotFitAreNamed) {
  Matrix<float> x(20, 2), y(3, 2);
  EXPECT_THROWS(mean_over_time_forward(kContext, x.in(), kOffsets, y.view()), kShape,
                "mean_over_time: 3 sequences of 20 rows need 4 offsets from 0 to 20; got 7");
}

}  // namespace
}  // namespace fovea
