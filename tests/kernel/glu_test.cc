// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/elementwise.h"
#include "fovea/reference/convolution.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

TEST(Glu, ErrorIsAtMostTwiceThatOfPlainLoops) {
  Random random(54, RandomUse::kTest);
  for (const index C : kColumns) {
    const auto x = Matrix<float>::random(random, 9, 2 * C, 3),
               dy = Matrix<float>::random(random, 9, C);
    const Matrix<double> wide_x(x), wide_dy(dy);
    Matrix<float> plain(9, C), plain_dx(9, 2 * C);
    Matrix<double> exact(9, C), exact_dx(9, 2 * C);
    reference::glu_forward(x.in(), plain.view());
    reference::glu_backward(x.in(), dy.in(), plain_dx.view());
    reference::glu_forward(wide_x.in(), exact.view());
    reference::glu_backward(wide_x.in(), wide_dy.in(), exact_dx.view());
    for_each_isa([&] {
      Matrix<float> y(9, C), dx(9, 2 * C);
      glu_forward(kContext, x.in(), y.view());
      glu_backward(kContext, x.in(), dy.in(), dx.view());
      expect_no_worse(y, plain, exact, "y");
      expect_no_worse(dx, plain_dx, exact_dx, "dx");
    });
  }
}

TEST(Glu, GradientIsThatOfTheForward) {
  Random random(55, RandomUse::kTest);
  auto x = Matrix<double>::random(random, 3, 10);
  const auto dy = Matrix<double>::random(random, 3, 5);
  Matrix<double> dx(3, 10);
  glu_backward(kContext, x.in(), dy.in(), dx.view());
  const auto loss = [&] {
    Matrix<double> y(3, 5);
    glu_forward(kContext, x.in(), y.view());
    return dot(y, dy);
  };
  expect_gradient(x, dx, loss, "x");
}

TEST(Glu, SameBitsForAnyNumberOfThreads) {
  Random random(56, RandomUse::kTest);
  const auto x = Matrix<float>::random(random, 900, 130);
  expect_same_for_threads([&](const Context& ctx) {
    Matrix<float> y(900, 65);
    glu_forward(ctx, x.in(), y.view());
    return y;
  });
}

TEST(Glu, NamesTheShapesInItsErrors) {
  Matrix<float> x(2, 5), y(2, 2);
  EXPECT_THROWS(glu_forward(kContext, x.in(), y.view()), kShape,
                "glu: x must be [2, 4]; it is [2, 5]");
}

}  // namespace
}  // namespace fovea
