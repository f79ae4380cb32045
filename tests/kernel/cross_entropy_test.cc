// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/cross_entropy.h"

#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

template <class T>
struct Result {
  CrossEntropy loss;
  Matrix<T> losses, dlogits;
  bool operator==(const Result& other) const {
    return loss.total == other.loss.total && loss.count == other.loss.count &&
           losses == other.losses && dlogits == other.dlogits;
  }
};

std::vector<std::int32_t> draw_targets(Random& random, index N, index V, std::int32_t ignore) {
  std::vector<std::int32_t> ids;
  for (index n = 0; n < N; ++n)
    ids.push_back(n % 3 == 1 ? ignore : static_cast<std::int32_t>(random.below(V)));
  return ids;
}

Targets targets_of(const std::vector<std::int32_t>& ids, std::int32_t ignore = -1) {
  return {{ids.data(), static_cast<index>(ids.size())}, ignore};
}

template <class T>
Result<T> fused(const Context& ctx, const Matrix<T>& logits, const Targets& targets,
                double scale = 1) {
  Result<T> r{{}, Matrix<T>(1, logits.rows()), Matrix<T>(logits.rows(), logits.columns())};
  r.loss = cross_entropy(ctx, logits.in(), targets, scale, r.losses.vec(), r.dlogits.view());
  return r;
}

template <class T>
Result<T> plain(const Matrix<T>& logits, const Targets& targets, double scale = 1) {
  Result<T> r{{}, Matrix<T>(1, logits.rows()), Matrix<T>(logits.rows(), logits.columns())};
  r.loss =
      reference::cross_entropy<T>(logits.in(), targets, scale, r.losses.vec(), r.dlogits.view());
  return r;
}

// By hand: softmax of (0, ln 2, ln 5) is (1, 2, 5) / 8.
TEST(CrossEntropy, MatchesValuesByHand) {
  Matrix<double> logits(2, 3);
  for (index n = 0; n < 2; ++n) {
    logits.at(n, 1) = std::log(2);
    logits.at(n, 2) = std::log(5);
  }
  const std::vector<std::int32_t> ids = {2, 0};
  const auto r = fused(kContext, logits, targets_of(ids), 0.5);
  EXPECT_NEAR(r.losses.at(0, 0), std::log(8.0 / 5), 1e-15);
  EXPECT_NEAR(r.losses.at(0, 1), std::log(8.0), 1e-15);
  EXPECT_NEAR(r.loss.total, std::log(64.0 / 5), 1e-14);
  EXPECT_EQ(r.loss.count, 2);
  EXPECT_NEAR(r.dlogits.at(0, 2), 0.5 * (5.0 / 8 - 1), 1e-15);
  EXPECT_NEAR(r.dlogits.at(1, 1), 0.5 * 2.0 / 8, 1e-15);
}

TEST(CrossEntropy, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(80, RandomUse::kTest);
    for (const double deviation : {1.0, 10.0, 100.0})
      for (const index V : kColumns) {
        const auto logits = Matrix<float>::random(random, 7, V, deviation);
        const auto ids = draw_targets(random, 7, V, -1);
        const auto fast = fused(kContext, logits, targets_of(ids));
        const auto slow = plain(logits, targets_of(ids));
        const auto exact = plain(Matrix<double>(logits), targets_of(ids));
        expect_no_worse(fast.losses, slow.losses, exact.losses, "losses");
        expect_no_worse(fast.dlogits, slow.dlogits, exact.dlogits, "dlogits");
        EXPECT_EQ(fast.loss.count, exact.loss.count);
        EXPECT_NEAR(fast.loss.total, exact.loss.total, 1e-5 * std::max(1.0, exact.loss.total));
      }
  });
}

// Weights of the classes, and a smoothing.
struct Weighted {
  Weighted(Random& random, index N, index V) : ids(draw_targets(random, N, V, -1)) {
    for (index v = 0; v < V; ++v) weights.push_back(v % 4 == 3 ? 0 : random.uniform(0.1, 2));
  }
  Targets targets(double smoothing) const {
    return {{ids.data(), static_cast<index>(ids.size())}, -1, weights, smoothing};
  }

  std::vector<std::int32_t> ids;
  std::vector<double> weights;
};

TEST(CrossEntropy, WeightedAndSmoothedErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(85, RandomUse::kTest);
    for (const index V : kColumns)
      for (const double smoothing : {0.0, 0.1}) {
        const auto logits = Matrix<float>::random(random, 7, V, 5);
        const Weighted weighted(random, 7, V);
        const Targets targets = weighted.targets(smoothing);
        const auto fast = fused(kContext, logits, targets, 0.5);
        const auto slow = plain(logits, targets, 0.5);
        const auto exact = plain(Matrix<double>(logits), targets, 0.5);
        expect_no_worse(fast.losses, slow.losses, exact.losses, "losses");
        expect_no_worse(fast.dlogits, slow.dlogits, exact.dlogits, "dlogits");
      }
  });
}

// cross_entropy(x, [2, 0, 1], weight=[1, .5, 3], label_smoothing=..) of PyTorch 2.13.
TEST(CrossEntropy, WeightedAndSmoothedIsThatOfPyTorch) {
  Matrix<double> x(3, 3);
  const double logits[] = {1, -2, .5, 0, 3, -1, 2, 2, -4}, weights[] = {1, .5, 3};
  for (index i = 0; i < 9; ++i) x.at(i / 3, i % 3) = logits[i];
  const std::vector<std::int32_t> ids = {2, 0, 1};
  Targets targets = targets_of(ids);
  targets.weights = {weights, 3};
  EXPECT_EQ(weigh_targets(targets, 3), 4.5);
  EXPECT_NEAR(fused(kContext, x, targets).loss.total / 4.5, 1.4281927789804765, 1e-15);
  targets.smoothing = 0.1;
  const auto r = fused(kContext, x, targets, 1 / 4.5);
  EXPECT_NEAR(r.loss.total / 4.5, 1.5942023875942768, 1e-15);
  const double expected[] = {0.3749668934867223,   0.015333591757026513, -0.39030048524374883,
                             -0.1965311288058802,  0.21475219173414767,  -0.018221062928267466,
                             0.059176736463483544, -0.03711955983281276, -0.022057176630670788};
  for (index i = 0; i < 9; ++i) EXPECT_NEAR(r.dlogits.at(i / 3, i % 3), expected[i], 1e-15);
}

TEST(CrossEntropy, WeightedAndSmoothedGradientIsThatOfTheLoss) {
  Random random(86, RandomUse::kTest);
  auto logits = Matrix<double>::random(random, 4, 5, 2);
  const Weighted weighted(random, 4, 5);
  const Targets targets = weighted.targets(0.3);
  expect_gradient(
      logits, fused(kContext, logits, targets).dlogits,
      [&] { return fused(kContext, logits, targets).loss.total; }, "logits");
}

TEST(CrossEntropy, SmoothedLossOfHugeLogitsIsExact) {
  for_each_isa([] {
    Matrix<float> logits(2, 4, -1e4f);
    logits.at(0, 1) = logits.at(1, 1) = 1e4f;
    const std::vector<std::int32_t> ids = {1, 0};
    Targets targets = targets_of(ids);
    targets.smoothing = 0.1;
    const auto r = fused(kContext, logits, targets);
    EXPECT_NEAR(r.losses.at(0, 0), 0.075 * 2e4, 1e-3);
    EXPECT_NEAR(r.losses.at(0, 1), 0.975 * 2e4, 1e-2);
    logits.at(1, 0) = -HUGE_VALF;
    EXPECT_EQ(fused(kContext, logits, targets).losses.at(0, 1), HUGE_VALF);
  });
}

TEST(CrossEntropy, WeightsAndSmoothingOutOfRangeAreRefused) {
  Matrix<float> logits(1, 2);
  const std::vector<std::int32_t> ids = {1};
  const double weights[] = {1, -1};
  Targets targets = targets_of(ids);
  targets.weights = {weights, 2};
  EXPECT_THROWS(fused(kContext, logits, targets), kOptionValue, "the weight of a class is -1");
  targets.weights = {weights, 1};
  EXPECT_THROWS(fused(kContext, logits, targets), kShape, "weights must be [V=2]; it is [1]");
  targets.weights = {};
  targets.smoothing = 1;
  EXPECT_THROWS(fused(kContext, logits, targets), kOptionValue, "smoothing is 1");
}

TEST(CrossEntropy, GradientIsThatOfTheLoss) {
  for_each_isa([] {
    Random random(81, RandomUse::kTest);
    for (const index V : {1, 5, 19}) {
      auto logits = Matrix<double>::random(random, 4, V, 2);
      const auto ids = draw_targets(random, 4, V, -1);
      const auto loss = [&] { return 0.7 * fused(kContext, logits, targets_of(ids)).loss.total; };
      expect_gradient(logits, fused(kContext, logits, targets_of(ids), 0.7).dlogits, loss,
                      "logits");
    }
  });
}

// Spec T3: index 0 as padding.
TEST(CrossEntropy, IgnoredRowsHaveNoLossAndNoGradient) {
  Random random(82, RandomUse::kTest);
  const auto logits = Matrix<float>::random(random, 3, 21);
  const std::vector<std::int32_t> some = {4, 0, 7}, none = {0, 0, 0};
  const auto r = fused(kContext, logits, targets_of(some, 0));
  EXPECT_EQ(r.loss.count, 2);
  EXPECT_EQ(r.losses.at(0, 1), 0.0f);
  for (index v = 0; v < 21; ++v) EXPECT_EQ(r.dlogits.at(1, v), 0.0f);
  const auto nothing = fused(kContext, logits, targets_of(none, 0));
  EXPECT_EQ(nothing.loss.total, 0);
  EXPECT_EQ(nothing.loss.count, 0);
  EXPECT_EQ(largest(nothing.dlogits.values()), 0);
}

TEST(CrossEntropy, HugeLogitsLoseNoDigitsOfTheLoss) {
  for_each_isa([] {
    Matrix<float> logits(1, 2, 1e4f);
    logits.at(0, 1) = 1e4f + 1;
    const std::vector<std::int32_t> ids = {1};
    const auto r = fused(kContext, logits, targets_of(ids));
    EXPECT_NEAR(r.loss.total, std::log1p(std::exp(-1.0)), 1e-7);
  });
}

TEST(CrossEntropy, ImpossibleTargetsHaveInfiniteLoss) {
  for_each_isa([] {
    Matrix<float> logits(2, 17, -HUGE_VALF);
    logits.at(0, 3) = 1;
    const std::vector<std::int32_t> ids = {5, 5};
    const auto r = fused(kContext, logits, targets_of(ids));
    EXPECT_EQ(r.losses.at(0, 0), HUGE_VALF);
    EXPECT_EQ(r.losses.at(0, 1), HUGE_VALF);
    EXPECT_EQ(r.dlogits.at(0, 3), 1.0f);
    EXPECT_EQ(r.dlogits.at(0, 5), -1.0f);
  });
}

TEST(CrossEntropy, TheGradientMayReplaceTheLogitsOrBeLeftOut) {
  Random random(83, RandomUse::kTest);
  auto logits = Matrix<float>::random(random, 5, 33);
  const auto ids = draw_targets(random, 5, 33, -1);
  const auto expected = fused(kContext, logits, targets_of(ids));
  Matrix<float> losses(1, 5);
  const auto alone =
      cross_entropy(kContext, logits.in(), targets_of(ids), 1, losses.vec(), Rows<float>());
  EXPECT_EQ(alone.total, expected.loss.total);
  cross_entropy(kContext, logits.in(), targets_of(ids), 1, losses.vec(), logits.view());
  EXPECT_TRUE(logits == expected.dlogits);
}

TEST(CrossEntropy, SameBitsForAnyNumberOfThreads) {
  Random random(84, RandomUse::kTest);
  const auto logits = Matrix<float>::random(random, 300, 131);
  const auto ids = draw_targets(random, 300, 131, -1);
  expect_same_for_threads([&](const Context& ctx) { return fused(ctx, logits, targets_of(ids)); });
}

TEST(CrossEntropy, ATargetOutOfRangeIsNamedWithItsPlace) {
  Matrix<float> logits(3, 4);
  const std::vector<std::int32_t> high = {0, 1, 4}, low = {-2, 1, 3}, few = {0};
  EXPECT_THROWS(fused(kContext, logits, targets_of(high)), kShape,
                "cross_entropy: targets[2] is 4; it must be in 0 to 3, or -1 to be ignored");
  EXPECT_THROWS(fused(kContext, logits, targets_of(low)), kShape, "targets[0] is -2");
  EXPECT_THROWS(fused(kContext, logits, targets_of(few)), kShape,
                "cross_entropy: targets must be [N=3]; it is [1]");
}

}  // namespace
}  // namespace fovea
