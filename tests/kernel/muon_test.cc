// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/muon.h"

#include <cmath>

#include "fovea/reference/optimizers.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

// X X^T of the lower side.
Matrix<double> square_of(const Matrix<double>& x) {
  const bool wide = x.rows() <= x.columns();
  const index R = std::min(x.rows(), x.columns()), C = std::max(x.rows(), x.columns());
  const auto at = [&](index r, index c) { return wide ? x.at(r, c) : x.at(c, r); };
  Matrix<double> square(R, R);
  for (index i = 0; i < R; ++i)
    for (index j = 0; j < R; ++j)
      for (index c = 0; c < C; ++c) square.at(i, j) += at(i, c) * at(j, c);
  return square;
}

TEST(Orthogonalise, IsTheDoubleReference) {
  for_each_isa([] {
    for (const auto& [R, C] : {std::pair{1, 1}, {1, 9}, {5, 5}, {20, 33}, {130, 64}, {97, 300}}) {
      Random random(100, RandomUse::kTest);
      const auto x = Matrix<float>::random(random, R, C, 3e-6);
      const Matrix<double> exact_x(x);
      Matrix<float> fast(R, C);
      Matrix<double> exact(R, C), in_double(R, C);
      orthogonalise<float>(kContext, x.view(), fast.view());
      orthogonalise<double>(kContext, exact_x.view(), in_double.view());
      reference::orthogonalise(exact_x.view(), exact.view());
      EXPECT_LE(largest_difference(fast.values(), exact.values()), 1e-4) << R << " " << C;
      EXPECT_LE(largest_difference(in_double.values(), exact.values()), 1e-12) << R << " " << C;
      EXPECT_TRUE(fast.padding_is_untouched());
    }
  });
}

// The squares of singular values, of which some are .3 of the largest, are about 1: the trace of
// X X^T is about its rows, and the products of different rows are small beside that.
TEST(Orthogonalise, MakesRowsOrthogonal) {
  for (const auto& [R, C] : {std::pair{12, 100}, {100, 12}}) {
    Random random(101, RandomUse::kTest);
    const auto x = Matrix<double>::random(random, R, C);
    Matrix<double> y(R, C);
    orthogonalise<double>(kContext, x.view(), y.view());
    const Matrix<double> square = square_of(y);
    for (index i = 0; i < 12; ++i) {
      EXPECT_GT(square.at(i, i), 0.45);
      EXPECT_LT(square.at(i, i), 1.5);
      for (index j = 0; j < i; ++j) EXPECT_LT(std::abs(square.at(i, j)), 0.4);
    }
  }
}

TEST(Orthogonalise, ZerosStayAndTheResultMayReplaceX) {
  Matrix<float> zeros(3, 4);
  orthogonalise<float>(kContext, zeros.view(), zeros.view());
  EXPECT_EQ(largest(zeros.values()), 0);
  Random random(102, RandomUse::kTest);
  auto x = Matrix<float>::random(random, 6, 4);
  Matrix<float> y(6, 4);
  orthogonalise<float>(kContext, x.view(), y.view());
  orthogonalise<float>(kContext, x.view(), x.view());
  EXPECT_TRUE(x == y);
}

template <class T>
double muon_distance_after_50_steps(index R, index C) {
  Random random(103, RandomUse::kTest);
  Matrix<double> value(Matrix<float>::random(random, R, C, 0.2)), gradient(R, C), m(R, C);
  Matrix<T> fast_value(value), fast_m(R, C);
  double distance = 0;
  for (index step = 1; step <= 50; ++step) {
    gradient = Matrix<double>(Matrix<float>::random(random, R, C));
    const Matrix<T> fast_gradient(gradient);
    const AdamWStep s{{.lr = 1e-3, .weight_decay = 0.1}, step, 0.5};
    reference::muon({value.view(), gradient.view(), m.view()}, s);
    muon<T>(kContext, {fast_value.view(), fast_gradient.view(), fast_m.view()}, s);
    distance = std::max({distance, largest_difference(fast_value.values(), value.values()),
                         largest_difference(fast_m.values(), m.values())});
  }
  return distance;
}

TEST(Muon, FollowsTheDoubleReferenceFor50Steps) {
  for_each_isa([] {
    for (const auto& [R, C] : {std::pair{16, 40}, {40, 16}, {33, 33}}) {
      EXPECT_LE(muon_distance_after_50_steps<float>(R, C), 3e-6) << R << " " << C;
      EXPECT_LE(muon_distance_after_50_steps<double>(R, C), 1e-12) << R << " " << C;
    }
  });
}

// As one of AdamW, an update has a root mean square of about .2 lr.
TEST(Muon, AnUpdateIsAsLargeAsThatOfAdamW) {
  for (const auto& [R, C] : {std::pair{64, 64}, {32, 128}, {256, 64}}) {
    Random random(104, RandomUse::kTest);
    Matrix<float> value(R, C), m(R, C);
    const auto gradient = Matrix<float>::random(random, R, C, 1e-4);
    muon<float>(kContext, {value.view(), gradient.view(), m.view()}, {{.lr = 1}});
    double squares = 0;
    for (const double x : value.values()) squares += x * x;
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(R * C)), 0.2, 0.06) << R << " " << C;
  }
}

TEST(Muon, SameBitsForAnyNumberOfThreads) {
  Random random(105, RandomUse::kTest);
  const auto gradient = Matrix<float>::random(random, 150, 220);
  const auto start = Matrix<float>::random(random, 150, 220);
  expect_same_for_threads([&](const Context& ctx) {
    auto value = start;
    Matrix<float> m(150, 220);
    for (index step = 1; step <= 2; ++step)
      muon<float>(ctx, {value.view(), gradient.view(), m.view()}, {.step = step});
    return std::pair(value, m);
  });
}

TEST(Muon, SaysWhatIsWrong) {
  Matrix<float> value(3, 4), gradient(3, 4), m(4, 3);
  EXPECT_THROWS(muon<float>(kContext, {value.view(), gradient.view(), m.view()}, {}), kShape,
                "muon: m must be [3, 4]; it is [4, 3]");
}

}  // namespace
}  // namespace fovea
