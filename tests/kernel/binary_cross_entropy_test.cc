// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/cross_entropy.h"
#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

template <class T>
struct Result {
  double total = 0;
  Matrix<T> losses, dlogits;
  bool operator==(const Result& other) const {
    return total == other.total && losses == other.losses && dlogits == other.dlogits;
  }
};

template <class T>
Result<T> room_for(const Matrix<T>& logits) {
  return {0, Matrix<T>(1, logits.rows()), Matrix<T>(logits.rows(), logits.columns())};
}

template <class T>
Result<T> fast(const Matrix<T>& logits, const Matrix<T>& y, const BinaryWeights& weights = {},
               double scale = 1, const Context& ctx = kContext) {
  Result<T> r = room_for(logits);
  r.total = binary_cross_entropy<T>(ctx, logits.in(), {y.in(), weights}, scale, r.losses.vec(),
                                    r.dlogits.view());
  return r;
}

template <class T>
Result<T> plain(const Matrix<T>& logits, const Matrix<T>& y, const BinaryWeights& weights) {
  Result<T> r = room_for(logits);
  r.total = reference::binary_cross_entropy<T>(logits.in(), {y.in(), weights}, 1, r.losses.vec(),
                                               r.dlogits.view());
  return r;
}

Matrix<double> uniform(Random& random, index rows, index columns) {
  Matrix<double> x(rows, columns);
  for (index r = 0; r < rows; ++r)
    for (index c = 0; c < columns; ++c) x.at(r, c) = random.uniform(0, 1);
  return x;
}

std::vector<double> numbers(Random& random, index count) {
  return uniform(random, 1, count).values();
}

TEST(BinaryCrossEntropy, IsThatOfPlainLoops) {
  Random random(85, RandomUse::kTest);
  for (const index K : kColumns) {
    const auto ones = numbers(random, K), zeros = numbers(random, K);
    const BinaryWeights weights{.ones = ones, .zeros = zeros, .smoothing = 0.1};
    const auto logits = Matrix<float>::random(random, 7, K, 3);
    const Matrix<float> y(uniform(random, 7, K));
    const auto ours = fast(logits, y, weights), loops = plain(logits, y, weights);
    const auto exact = plain(Matrix<double>(logits), Matrix<double>(y), weights);
    expect_no_worse(ours.losses, loops.losses, exact.losses, "losses");
    expect_no_worse(ours.dlogits, loops.dlogits, exact.dlogits, "dlogits");
    EXPECT_NEAR(ours.total, exact.total, 1e-6 * exact.total);
  }
}

// binary_cross_entropy_with_logits(x, y, weight=[1, .5, 3], pos_weight=[2, 1, .5]) of PyTorch 2.13.
TEST(BinaryCrossEntropy, IsThatOfPyTorch) {
  Matrix<double> x(3, 3), y(3, 3);
  const double logits[] = {1, -2, .5, 0, 3, -1, 2, 2, -4},
               targets[] = {1, 0, 1, 0, 0, 1, .25, 1, 0};
  for (index i = 0; i < 9; ++i) {
    x.at(i / 3, i % 3) = logits[i];
    y.at(i / 3, i % 3) = targets[i];
  }
  const double ones[] = {2, .5, 1.5}, zeros[] = {1, .5, 3};
  const auto r = fast(x, y, {{ones, 3}, {zeros, 3}}, 1 / 9.0);
  EXPECT_NEAR(r.total / 9, 0.8183344497256525, 1e-15);
  const double expected[] = {-0.05976476030444336, 0.006622384556784308,  -0.06292344479969089,
                             0.05555555555555555,  0.05292078482346852,   -0.12184309643833416,
                             0.06677737194137255,  -0.006622384556784316, 0.005995403320697186};
  for (index i = 0; i < 9; ++i) EXPECT_NEAR(r.dlogits.at(i / 3, i % 3), expected[i], 1e-16);
}

TEST(BinaryCrossEntropy, GradientIsThatOfTheLoss) {
  Random random(86, RandomUse::kTest);
  auto logits = Matrix<double>::random(random, 4, 3, 2);
  const auto y = uniform(random, 4, 3);
  const auto ones = numbers(random, 3);
  const BinaryWeights weights{.ones = ones, .smoothing = 0.2};
  expect_gradient(
      logits, fast(logits, y, weights, 0.7).dlogits,
      [&] { return 0.7 * fast(logits, y, weights).total; }, "logits");
}

TEST(BinaryCrossEntropy, HugeLogitsAreExact) {
  Matrix<float> logits(1, 4, 1e4f), y(1, 4);
  logits.at(0, 1) = logits.at(0, 3) = -1e4f;
  y.at(0, 0) = y.at(0, 1) = 1;
  const auto r = fast(logits, y);
  EXPECT_EQ(r.total, 2e4);
  EXPECT_THAT(r.dlogits.values(), testing::ElementsAre(0, -1, 1, 0));
  logits.at(0, 0) = HUGE_VALF;
  logits.at(0, 3) = -HUGE_VALF;
  EXPECT_EQ(fast(logits, y).total, 2e4) << "what is certain and right costs nothing";
  logits.at(0, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(fast(logits, y).total));
}

TEST(BinaryCrossEntropy, WithoutATargetThereIsNoLossAndNoGradient) {
  Matrix<float> logits(1, 2, 3.0f), y(1, 2, -1.0f);
  y.at(0, 1) = 1;
  const auto r = fast(logits, y, {.smoothing = 0.1});
  y.at(0, 0) = 1;
  EXPECT_NEAR(2 * r.total, fast(logits, y, {.smoothing = 0.1}).total, 1e-6);
  EXPECT_EQ(r.dlogits.at(0, 0), 0);
}

TEST(BinaryCrossEntropy, TheGradientMayReplaceTheLogitsOrBeLeftOut) {
  Random random(87, RandomUse::kTest);
  auto logits = Matrix<float>::random(random, 5, 6);
  const Matrix<float> y(uniform(random, 5, 6));
  const auto expected = fast(logits, y);
  Matrix<float> losses(1, 5);
  EXPECT_EQ(binary_cross_entropy<float>(kContext, logits.in(), {y.in(), {}}, 1, losses.vec(), {}),
            expected.total);
  binary_cross_entropy<float>(kContext, logits.in(), {y.in(), {}}, 1, losses.vec(), logits.view());
  EXPECT_TRUE(logits == expected.dlogits);
}

TEST(BinaryCrossEntropy, SameBitsForAnyNumberOfThreads) {
  Random random(88, RandomUse::kTest);
  const auto logits = Matrix<float>::random(random, 300, 5);
  const Matrix<float> y(uniform(random, 300, 5));
  expect_same_for_threads([&](const Context& ctx) { return fast(logits, y, {}, 1, ctx); });
}

TEST(BinaryCrossEntropy, WhatIsOutOfRangeIsNamed) {
  Matrix<float> logits(2, 2), y(2, 2), few(1, 2);
  EXPECT_THROWS(fast(logits, few), kShape,
                "binary_cross_entropy: targets must be [2, 2]; it is [1, 2]");
  const double negative[] = {1, -1};
  EXPECT_THROWS(fast(logits, y, {.ones = {negative, 2}}), kOptionValue, "a weight of ones is -1");
  EXPECT_THROWS(fast(logits, y, {.zeros = {negative, 1}}), kShape, "zeros must be [K=2]");
  EXPECT_THROWS(fast(logits, y, {.smoothing = 1}), kOptionValue, "smoothing is 1");
  y.at(1, 0) = 2;
  EXPECT_THROWS(fast(logits, y), kOptionValue, "targets[1, 0] is 2; it must be in 0 to 1, or -1");
}

}  // namespace
}  // namespace fovea
