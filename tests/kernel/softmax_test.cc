// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/softmax.h"

#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
Matrix<T> softmax_of(const Context& ctx, const Matrix<T>& x) {
  Matrix<T> y(x.rows(), x.columns());
  softmax_forward(ctx, x.in(), y.view());
  return y;
}

template <class T>
Matrix<T> softmax_gradient(const Context& ctx, const Matrix<T>& y, const Matrix<T>& dy) {
  Matrix<T> dx(y.rows(), y.columns());
  softmax_backward(ctx, y.in(), dy.in(), dx.view());
  return dx;
}

template <class T>
Matrix<T> plain_softmax(const Matrix<T>& x) {
  Matrix<T> y(x.rows(), x.columns());
  reference::softmax_forward<T>(x.in(), y.view());
  return y;
}

template <class T>
Matrix<T> plain_gradient(const Matrix<T>& y, const Matrix<T>& dy) {
  Matrix<T> dx(y.rows(), y.columns());
  reference::softmax_backward<T>(y.in(), dy.in(), dx.view());
  return dx;
}

TEST(Softmax, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(2, RandomUse::kTest);
    for (const double deviation : {1.0, 10.0, 100.0})
      for (const index C : kColumns) {
        const auto x = Matrix<float>::random(random, 5, C, deviation);
        const Matrix<double> exact = plain_softmax(Matrix<double>(x));
        expect_no_worse(softmax_of(kContext, x), plain_softmax(x), exact, "forward");

        const Matrix<float> y(exact);
        const auto dy = Matrix<float>::random(random, 5, C);
        expect_no_worse(softmax_gradient(kContext, y, dy), plain_gradient(y, dy),
                        plain_gradient(Matrix<double>(y), Matrix<double>(dy)), "backward");
      }
  });
}

TEST(Softmax, GradientIsThatOfTheForward) {
  for_each_isa([] {
    Random random(3, RandomUse::kTest);
    for (const index C : {1, 5, 19}) {
      auto x = Matrix<double>::random(random, 3, C, 2);
      const auto dy = Matrix<double>::random(random, 3, C);
      const auto dx = softmax_gradient(kContext, softmax_of(kContext, x), dy);
      expect_gradient(
          x, dx, [&] { return dot(softmax_of(kContext, x), dy); }, "x");
    }
  });
}

TEST(Softmax, HugeLogitsDoNotOverflow) {
  for_each_isa([] {
    Matrix<float> x(2, 3);
    for (index c = 0; c < 3; ++c) {
      x.at(0, c) = 1e4f + static_cast<float>(c);
      x.at(1, c) = c == 1 ? 3e38f : -3e38f;
    }
    const auto y = softmax_of(kContext, x);
    EXPECT_NEAR(y.at(0, 2), 1 / (1 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
    EXPECT_EQ(y.at(1, 1), 1.0f);
    EXPECT_EQ(y.at(1, 0), 0.0f);
  });
}

TEST(Softmax, MinusInfinityIsZeroAndARowOfItIsEmpty) {
  for_each_isa([] {
    for (const index C : {1, 3, 16, 21}) {
      Matrix<double> x(2, C, -kInfinity);
      x.at(1, C - 1) = -7;
      const auto y = softmax_of(kContext, x);
      const auto z = softmax_of(kContext, Matrix<float>(x));
      for (index c = 0; c < C; ++c) {
        EXPECT_EQ(y.at(0, c), 0.0);
        EXPECT_EQ(z.at(0, c), 0.0f);
        EXPECT_EQ(y.at(1, c), c == C - 1 ? 1.0 : 0.0);
        EXPECT_EQ(z.at(1, c), c == C - 1 ? 1.0f : 0.0f);
      }
    }
  });
}

TEST(Softmax, NaNPoisonsItsRowAlone) {
  for_each_isa([] {
    for (const index poisoned : {0, 9, 36}) {
      Matrix<float> x(2, 37, 1.0f);
      x.at(0, poisoned) = std::numeric_limits<float>::quiet_NaN();
      const auto y = softmax_of(kContext, x);
      for (index c = 0; c < 37; ++c) {
        EXPECT_TRUE(std::isnan(y.at(0, c)));
        EXPECT_FLOAT_EQ(y.at(1, c), 1.0f / 37);
      }
    }
  });
}

TEST(Softmax, WorksInPlace) {
  Random random(4, RandomUse::kTest);
  auto x = Matrix<float>::random(random, 7, 21);
  const auto y = softmax_of(kContext, x);
  softmax_forward(kContext, x.view(), x.view());
  EXPECT_TRUE(x == y);
}

TEST(Softmax, NothingIsDoneForNoRowsOrNoColumns) {
  softmax_of(kContext, Matrix<float>(0, 5));
  softmax_of(kContext, Matrix<float>(5, 0));
}

TEST(Softmax, SameBitsForAnyNumberOfThreads) {
  Random random(5, RandomUse::kTest);
  const auto x = Matrix<float>::random(random, 700, 130);
  expect_same_for_threads([&](const Context& ctx) { return softmax_of(ctx, x); });
}

TEST(Softmax, NamesTheShapesInItsErrors) {
  Matrix<float> x(2, 5), y(2, 4);
  EXPECT_THROWS(softmax_forward(kContext, x.in(), y.view()), kShape,
                "softmax: y must be [2, 5]; it is [2, 4]");
  EXPECT_THROWS(softmax_backward(kContext, x.in(), y.in(), x.view()), kShape,
                "softmax_backward: dy must be [2, 5]; it is [2, 4]");
}

TEST(LogSumExp, IsThatOfTheSum) {
  for_each_isa([] {
    Random random(5, RandomUse::kTest);
    for (const double deviation : {1.0, 100.0})
      for (const index C : kColumns) {
        const auto x = Matrix<float>::random(random, 3, C, deviation);
        std::vector<double> y(3);
        log_sum_exp<float>(kContext, x.in(), {y.data(), 3});
        for (index n = 0; n < 3; ++n) {
          double most = -kInfinity, sum = 0;
          for (index c = 0; c < C; ++c) most = std::max(most, double{x.at(n, c)});
          for (index c = 0; c < C; ++c) sum += std::exp(double{x.at(n, c)} - most);
          EXPECT_NEAR(y[static_cast<std::size_t>(n)], most + std::log(sum), 1e-6);
        }
      }
    const Matrix<float> none(1, 5, -std::numeric_limits<float>::infinity());
    double y = 0;
    log_sum_exp<float>(kContext, none.in(), {&y, 1});
    EXPECT_EQ(y, -kInfinity);
  });
}

}  // namespace
}  // namespace fovea
