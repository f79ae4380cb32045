// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/elementwise.h"
#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);
constexpr std::array kAll = {Activation::kNone,     Activation::kRelu, Activation::kGelu,
                             Activation::kGeluTanh, Activation::kSilu, Activation::kTanh};

template <class T>
Matrix<T> forward(const Context& ctx, Activation f, const Matrix<T>& x) {
  Matrix<T> y(x.rows(), x.columns());
  activation_forward(ctx, f, x.in(), y.view());
  return y;
}

template <class T>
Matrix<T> backward(const Context& ctx, Activation f, const Matrix<T>& x, const Matrix<T>& dy) {
  Matrix<T> dx(x.rows(), x.columns());
  activation_backward(ctx, f, x.in(), dy.in(), dx.view());
  return dx;
}

template <class T>
Matrix<T> plain_forward(Activation f, Matrix<T> x) {
  for (index r = 0; r < x.rows(); ++r)
    for (index c = 0; c < x.columns(); ++c) x.at(r, c) = reference::activate(f, x.at(r, c));
  return x;
}

template <class T>
Matrix<T> plain_backward(Activation f, Matrix<T> x, const Matrix<T>& dy) {
  for (index r = 0; r < x.rows(); ++r)
    for (index c = 0; c < x.columns(); ++c)
      x.at(r, c) = reference::activate_gradient(f, x.at(r, c)) * dy.at(r, c);
  return x;
}

TEST(Activation, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(30, RandomUse::kTest);
    for (const Activation f : kAll)
      for (const double deviation : {0.1, 1.0, 10.0})
        for (const index C : kColumns) {
          const auto x = Matrix<float>::random(random, 5, C, deviation);
          const auto dy = Matrix<float>::random(random, 5, C);
          expect_no_worse(forward(kContext, f, x), plain_forward(f, x),
                          plain_forward(f, Matrix<double>(x)), "forward");
          expect_no_worse(backward(kContext, f, x, dy), plain_backward(f, x, dy),
                          plain_backward(f, Matrix<double>(x), Matrix<double>(dy)), "backward");
        }
  });
}

TEST(Activation, DoubleIsTheReference) {
  for_each_isa([] {
    Random random(31, RandomUse::kTest);
    for (const Activation f : kAll) {
      const auto x = Matrix<double>::random(random, 5, 33, 3);
      EXPECT_LE(largest_difference(forward(kContext, f, x).values(), plain_forward(f, x).values()),
                1e-14);
    }
  });
}

TEST(Activation, GradientIsThatOfTheForward) {
  for_each_isa([] {
    Random random(32, RandomUse::kTest);
    for (const Activation f : kAll) {
      auto x = Matrix<double>::random(random, 3, 19, 2);
      for (index c = 0; c < 19; ++c)  // the kink of kRelu is no place for differences
        for (index r = 0; r < 3; ++r) x.at(r, c) += std::copysign(0.01, x.at(r, c));
      const auto dy = Matrix<double>::random(random, 3, 19);
      const auto dx = backward(kContext, f, x, dy);
      expect_gradient(
          x, dx, [&] { return dot(forward(kContext, f, x), dy); }, "x");
    }
  });
}

TEST(Activation, FarOutItIsTheLineOrZero) {
  for_each_isa([] {
    const Matrix<float> high(1, 3, 1e4f), low(1, 3, -1e4f), one(1, 3, 1.0f);
    for (const Activation f :
         {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kSilu}) {
      EXPECT_EQ(forward(kContext, f, high).at(0, 0), 1e4f);
      EXPECT_EQ(forward(kContext, f, low).at(0, 1), 0.0f);
      EXPECT_EQ(backward(kContext, f, high, one).at(0, 0), 1.0f);
      EXPECT_EQ(backward(kContext, f, low, one).at(0, 2), 0.0f);
      for (const float x : {-20.0f, -50.0f, -88.0f, -100.0f}) {
        EXPECT_LE(std::abs(forward(kContext, f, Matrix<float>(1, 1, x)).at(0, 0)),
                  -2 * x * std::exp(x));
      }
    }
    EXPECT_EQ(forward(kContext, Activation::kTanh, low).at(0, 0), -1.0f);
  });
}

// The exponent x^2 / 2 has three roundings (x^2, a constant, their product) of 2^-24 relative to
// it. The polynomial and the products have 8 such units more.
TEST(Activation, TheLeftTailOfGeluKeepsItsRelativeAccuracy) {
  for_each_isa([] {
    const Matrix<float> one(1, 1, 1.0f);
    for (int i = 1; i <= 1300; ++i) {
      const float x = -0.01f * static_cast<float>(i);
      const double exact = reference::activate(Activation::kGelu, double{x});
      const double bound = (8 + 1.5 * x * x) * 0x1p-24;
      const float got = forward(kContext, Activation::kGelu, Matrix<float>(1, 1, x)).at(0, 0);
      EXPECT_LE(std::abs(got / exact - 1), bound) << x;
      const double slope = reference::activate_gradient(Activation::kGelu, double{x});
      const double terms = std::abs(exact / x) + std::abs(slope - exact / x);
      const float gradient =
          backward(kContext, Activation::kGelu, Matrix<float>(1, 1, x), one).at(0, 0);
      EXPECT_LE(std::abs(gradient - slope), bound * terms) << x;
    }
  });
}

// At -infinity the formulas of GELU and SiLU give -infinity times 0, in PyTorch too.
TEST(Activation, InfinityIsThatOfTheFormula) {
  for_each_isa([] {
    const float infinity = std::numeric_limits<float>::infinity();
    const auto value = [](Activation f, float x) {
      return forward(kContext, f, Matrix<float>(1, 1, x)).at(0, 0);
    };
    for (const Activation f : {Activation::kGelu, Activation::kGeluTanh, Activation::kSilu}) {
      EXPECT_EQ(value(f, infinity), infinity);
      EXPECT_TRUE(std::isnan(value(f, -infinity)));
      EXPECT_EQ(value(f, 1e20f), 1e20f);
      EXPECT_EQ(value(f, -1e20f), 0.0f);
    }
  });
}

TEST(Activation, NaNStaysNaN) {
  for_each_isa([] {
    const Matrix<float> x(2, 19, std::numeric_limits<float>::quiet_NaN());
    for (const Activation f : kAll) {
      const auto y = forward(kContext, f, x);
      for (index c = 0; c < 19; ++c) EXPECT_TRUE(std::isnan(y.at(1, c)));
    }
  });
}

TEST(Activation, TheGradientOfReluAtZeroIsZero) {
  const Matrix<float> x(1, 5, 0.0f), dy(1, 5, 1.0f);
  EXPECT_EQ(backward(kContext, Activation::kRelu, x, dy).at(0, 3), 0.0f);
}

TEST(Activation, WorksInPlaceAndOnContiguousRows) {
  Random random(33, RandomUse::kTest);
  for (const Activation f : kAll) {
    auto x = Matrix<float>::random(random, 7, 21);
    const auto y = forward(kContext, f, x);
    std::vector<float> values;
    for (const double v : x.values()) values.push_back(static_cast<float>(v));
    const Rows<float> contiguous(values.data(), 7, 21);
    activation_forward<float>(kContext, f, contiguous, contiguous);
    EXPECT_EQ(std::vector<double>(values.begin(), values.end()), y.values());
    activation_forward(kContext, f, x.view(), x.view());
    EXPECT_TRUE(x == y);
  }
}

TEST(Activation, SameBitsForAnyNumberOfThreads) {
  Random random(34, RandomUse::kTest);
  const auto x = Matrix<float>::random(random, 500, 131);
  for (const Activation f : kAll)
    expect_same_for_threads([&](const Context& ctx) { return forward(ctx, f, x); });
}

TEST(Activation, NamesTheShapesInItsErrors) {
  Matrix<float> x(2, 5), y(3, 5);
  EXPECT_THROWS(activation_forward(kContext, Activation::kRelu, x.in(), y.view()), kShape,
                "activation: y must be [2, 5]; it is [3, 5]");
}

}  // namespace
}  // namespace fovea
