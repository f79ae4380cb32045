// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/elementwise.h"

#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

// Each is one rounding (or none), so the results are those of the plain expression, bit for bit.
template <class T>
void expect_plain_expressions(Random& random, index N, index C) {
  const auto a = Matrix<T>::random(random, N, C), b = Matrix<T>::random(random, N, C);
  const auto bias = Matrix<T>::random(random, 1, C);
  Matrix<T> sum(N, C), product(N, C), scaled(N, C), copy(N, C), biased(N, C), added = a;
  add_forward(kContext, a.in(), b.in(), sum.view());
  multiply(kContext, a.in(), b.in(), product.view());
  scale(kContext, 0.3, a.in(), scaled.view());
  copy_rows(kContext, a.in(), copy.view());
  add_bias(kContext, a.in(), bias.vec(), biased.view());
  accumulate(kContext, b.in(), added.view());
  for (index n = 0; n < N; ++n)
    for (index c = 0; c < C; ++c) {
      ASSERT_EQ(sum.at(n, c), a.at(n, c) + b.at(n, c));
      ASSERT_EQ(product.at(n, c), a.at(n, c) * b.at(n, c));
      ASSERT_EQ(scaled.at(n, c), static_cast<T>(0.3) * a.at(n, c));
      ASSERT_EQ(biased.at(n, c), a.at(n, c) + bias.at(0, c));
    }
  EXPECT_TRUE(copy == a);
  EXPECT_TRUE(added == sum);
  for (const auto* m : {&sum, &product, &scaled, &biased}) EXPECT_TRUE(m->padding_is_untouched());
  fill(kContext, 7, sum.view());
  EXPECT_TRUE(sum == Matrix<T>(N, C, 7));
}

TEST(Elementwise, AreThePlainExpressions) {
  for_each_isa([] {
    Random random(40, RandomUse::kTest);
    for (const index C : kColumns) {
      expect_plain_expressions<float>(random, 5, C);
      expect_plain_expressions<double>(random, 5, C);
    }
  });
}

TEST(Elementwise, ContiguousRowsAreOneLongRow) {
  std::vector<float> x(100 * 1001, 1.0f), y(x.size(), 2.0f);
  const Rows<float> a(x.data(), 100, 1001), b(y.data(), 100, 1001);
  accumulate(kContext, a, b);
  EXPECT_EQ(y, std::vector<float>(x.size(), 3.0f));
}

TEST(Elementwise, SameBitsForAnyNumberOfThreads) {
  Random random(41, RandomUse::kTest);
  const auto a = Matrix<float>::random(random, 900, 131),
             b = Matrix<float>::random(random, 900, 131);
  expect_same_for_threads([&](const Context& ctx) {
    Matrix<float> y(900, 131);
    add_forward(ctx, a.in(), b.in(), y.view());
    scale(ctx, 0.7, y.view(), y.view());
    return y;
  });
}

TEST(Elementwise, NamesTheShapesInItsErrors) {
  Matrix<float> x(2, 5), y(2, 4);
  EXPECT_THROWS(add_forward(kContext, x.in(), x.in(), y.view()), kShape,
                "add: y must be [2, 5]; it is [2, 4]");
  EXPECT_THROWS(accumulate(kContext, x.in(), y.view()), kShape, "accumulate: y must be [2, 5]");
  EXPECT_THROWS(add_bias(kContext, x.in(), y.vec(), x.view()), kShape,
                "add_bias: bias must be [C=5]; it is [4]");
}

}  // namespace
}  // namespace fovea
