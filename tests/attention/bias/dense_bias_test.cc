// SPDX-License-Identifier: Apache-2.0
// A bias matrix broadcast over every set of axes, and its gradient, which is reduced to its shape.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fovea/attention/bias/dense.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

/// Which axes a matrix has; the others are of size 1.
struct Axes {
  bool batch, heads, queries;

  std::string text() const {
    return std::string(batch ? "B" : "1") + (heads ? " H" : " 1") + (queries ? " T" : " 1");
  }
};

template <class F>
void for_each_shape(F&& f) {
  for (int n = 0; n < 8; ++n) {
    const Axes axes{(n & 4) != 0, (n & 2) != 0, (n & 1) != 0};
    SCOPED_TRACE(axes.text());
    f(axes);
  }
}

/// A matrix for a call, whose rows lie `gap` values apart.
template <class V>
struct Matrix {
  static constexpr V kGap{-77};
  Sizes sizes;
  index gap;
  std::vector<V> values, gradient;

  Matrix(const Sizes& of_call, const Axes& axes, index g = 0) : sizes(of_call), gap(g) {
    if (!axes.batch) sizes.B = 1;
    if (!axes.heads) sizes.H = 1;
    if (!axes.queries) sizes.T = 1;
    values = normals<V>(50, sizes.B * sizes.H * sizes.T * (sizes.S + gap));
    gradient.assign(values.size(), kGap);
  }
  template <class U>
  ScoreView<U> view(U* data) const {
    const auto& [B, T, S, H, G, D, Dv] = sizes;
    const index row = S + gap;
    return {data, B, H, T, S, H * T * row, T * row, row};
  }
  bias::Dense<V> bias() {
    return bias::Dense<V>(view<const V>(values.data()), view(gradient.data()));
  }
};

constexpr Sizes kSizes{.B = 3, .T = 70, .S = 290, .H = 4, .G = 2, .D = 5, .Dv = 3};

// Lengths that leave entries untouched, and a mask that leaves tiles out.
const std::vector<std::int32_t> kKeyLengths = {290, 131, 0}, kQueryLengths = {70, 65, 3};
Mask masks() {
  return mask::Causal() & mask::Window(150, 0) & mask::KeyLengths(view_of(kKeyLengths)) &
         mask::QueryLengths(view_of(kQueryLengths));
}

TEST(DenseBias, IsBroadcastOverEveryAxis) {
  for_each_isa([] {
    for_each_shape([](const Axes& axes) {
      Matrix<double> matrix(kSizes, axes, 3), exact = matrix;
      Call<double> fused(kSizes, 1), reference = fused;
      fused.run({.bias = matrix.bias(), .mask = masks()}, Method::kFused, 2);
      reference.run({.bias = exact.bias(), .mask = masks()}, Method::kReference);
      EXPECT_LE(difference(fused.o, reference.o), 1e-12);
      EXPECT_LE(difference(fused.dq, reference.dq), 1e-11);
      EXPECT_LE(difference(fused.dk, reference.dk), 1e-11);
      EXPECT_LE(difference(fused.dv, reference.dv), 1e-11);
      EXPECT_LE(difference(matrix.gradient, exact.gradient), 1e-11) << "and between rows nothing";
    });
  });
}

// The gradient of a broadcast matrix is the sum of that of the matrix written out.
TEST(DenseBias, GradientIsReducedToItsShape) {
  for_each_shape([](const Axes& axes) {
    Matrix<double> matrix(kSizes, axes), whole(kSizes, {true, true, true});
    const auto from = matrix.view(matrix.values.data()), to = whole.view(whole.values.data());
    const auto for_each_entry = [&](auto&& f) {
      for (index n = 0; n < to.batch * to.heads * to.queries; ++n) {
        const index b = n / to.queries / to.heads, h = n / to.queries % to.heads;
        for (index j = 0; j < to.keys; ++j) f(b, h, n % to.queries, j);
      }
    };
    for_each_entry(
        [&](index b, index h, index i, index j) { to.at(b, h, i, j) = from.at(b, h, i, j); });
    Call<double> one(kSizes, 1), other = one;
    one.run({.bias = matrix.bias(), .mask = masks()});
    other.run({.bias = whole.bias(), .mask = masks()});
    EXPECT_EQ(one.dq, other.dq);
    std::vector<double> sums(matrix.gradient.size());
    for_each_entry([&](index b, index h, index i, index j) {
      matrix.view(sums.data()).at(b, h, i, j) += whole.view(whole.gradient.data()).at(b, h, i, j);
    });
    EXPECT_LE(difference(matrix.gradient, sums), 1e-11);
  });
}

// A gradient that no cache holds is cleared on another way; rows begin anywhere.
TEST(DenseBias, ALargeGradientIsClearedToo) {
  const Sizes sizes{.T = 1500, .S = 1500, .D = 2, .Dv = 2};
  Matrix<float> matrix(sizes, {false, false, true}, 3);
  for_each_isa([&] {
    std::fill(matrix.gradient.begin(), matrix.gradient.end(), matrix.kGap);
    Call<float> call(sizes);
    call.run({.bias = matrix.bias(), .mask = mask::Causal()}, Method::kFused, 2);
    double kept = 0;
    for (index i = 0; i < sizes.T; ++i) {
      const float* const row = matrix.gradient.data() + i * (sizes.S + 3);
      for (index j = 0; j < sizes.S; ++j) {
        kept += std::abs(static_cast<double>(row[j]));
        ASSERT_TRUE(j <= i || row[j] == 0) << i << ", " << j;
      }
      for (index j = sizes.S; j < sizes.S + 3; ++j) ASSERT_EQ(row[j], matrix.kGap) << i;
    }
    EXPECT_GT(kept, 100);
    EXPECT_LT(kept, 1e4);
  });
}

TEST(DenseBias, SameBitsForAnyNumberOfThreads) {
  constexpr Sizes kLong{.B = 2, .T = 150, .S = 600, .H = 4, .G = 2, .D = 5, .Dv = 3};
  for_each_shape([&](const Axes& axes) {
    Matrix<float> matrix(kLong, axes);
    Call<float> once(kLong, 1);
    once.run({.bias = matrix.bias(), .mask = mask::Causal()});
    for (const int threads : {2, 3, 8}) {
      Matrix<float> again(kLong, axes);
      Call<float> call(kLong, 1);
      call.run({.bias = again.bias(), .mask = mask::Causal()}, Method::kFused, threads);
      EXPECT_TRUE(same_results(once, call)) << threads << " threads";
      EXPECT_EQ(matrix.gradient, again.gradient) << threads << " threads";
    }
  });
}

// Packed rows and columns; what lies across sequences may hold anything, and has gradient 0.
struct PackedCase {
  std::vector<std::int32_t> queries = {0, 30, 30, 100}, keys = {0, 150, 160, 460};
  Sizes all{.T = 100, .S = 460, .H = 2, .G = 1, .D = 5, .Dv = 3};

  bool across(index i, index j) const { return !(i < 30 && j < 150) && !(i >= 30 && j >= 160); }
};

TEST(DenseBias, PackedIsOneCallForEachSequence) {
  for_each_isa([] {
    const PackedCase packed;
    Matrix<float> matrix(packed.all, {false, true, true});
    const auto values = matrix.view(matrix.values.data());
    for (index n = 0; n < 2 * packed.all.T * packed.all.S; ++n) {
      const index i = n / packed.all.S % packed.all.T, j = n % packed.all.S;
      if (packed.across(i, j)) matrix.values[static_cast<std::size_t>(n)] = NAN;
    }
    Call<float> call(packed.all, 1);
    call.run({.bias = matrix.bias(), .packed = {view_of(packed.queries), view_of(packed.keys)}},
             Method::kFused, 2);
    const auto gradient = matrix.view(matrix.gradient.data());
    for (const std::size_t n : {0u, 2u}) {
      const index q = packed.queries[n], k = packed.keys[n];
      Sizes sizes = packed.all;
      sizes.T = packed.queries[n + 1] - q;
      sizes.S = packed.keys[n + 1] - k;
      Call<float> one(sizes);
      std::copy_n(call.q_row(0, q, 0), one.q.size(), one.q.begin());
      std::copy_n(call.k_row(0, k, 0), one.k.size(), one.k.begin());
      std::copy_n(call.v_row(0, k, 0), one.v.size(), one.v.begin());
      std::copy_n(call.d_o_row(0, q, 0), one.d_o.size(), one.d_o.begin());
      Matrix<float> alone(sizes, {false, true, true});
      const auto part = alone.view(alone.values.data());
      const auto for_each_entry = [&](auto&& f) {
        for (index m = 0; m < 2 * sizes.T * sizes.S; ++m) {
          f(m / sizes.S / sizes.T, m / sizes.S % sizes.T, m % sizes.S);
        }
      };
      for_each_entry(
          [&](index h, index i, index j) { part.at(0, h, i, j) = values.at(0, h, q + i, k + j); });
      one.run({.bias = alone.bias()});
      EXPECT_TRUE(std::equal(one.o.begin(), one.o.end(), call.o_row(0, q, 0)));
      for_each_entry([&](index h, index i, index j) {
        ASSERT_EQ(alone.view(alone.gradient.data()).at(0, h, i, j),
                  gradient.at(0, h, q + i, k + j));
      });
    }
    for (index i = 0; i < packed.all.T; ++i) {
      for (index j = 0; j < packed.all.S; ++j) {
        if (!packed.across(i, j)) continue;
        ASSERT_EQ(gradient.at(0, 1, i, j), 0);
      }
    }
  });
}

// NaN and infinity in entries that the mask drops: nothing changes, and their gradient is 0.
TEST(DenseBias, PoisonInMaskedEntriesReachesNothing) {
  for_each_isa([] {
    for (const bool shared : {false, true}) {
      Matrix<float> clean(kSizes, {!shared, !shared, true}), bad = clean;
      const auto values = bad.view(bad.values.data());
      for (index h = 0; h < values.heads; ++h) {
        for (index i = 0; i < values.queries; ++i) {
          for (index j = i + kSizes.S - kSizes.T + 1; j < kSizes.S; ++j) {
            values.at(0, h, i, j) = j % 2 == 0 ? NAN : INFINITY;
          }
        }
      }
      Call<float> good(kSizes, 1), spoiled = good;
      good.run({.bias = clean.bias(), .mask = mask::Causal()});
      spoiled.run({.bias = bad.bias(), .mask = mask::Causal()});
      EXPECT_TRUE(same_results(good, spoiled));
      EXPECT_EQ(clean.gradient, bad.gradient);
      EXPECT_EQ(bad.view(bad.gradient.data()).at(0, 0, 0, kSizes.S - 1), 0);
    }
  });
}

TEST(DenseBias, NamesWhatDoesNotFit) {
  std::vector<float> x(1000), dx(1000);
  const auto run = [&](ScoreView<float> values, ScoreView<float> gradient) {
    Call<float> call({.B = 2, .T = 3, .S = 5, .H = 4, .G = 2, .D = 2, .Dv = 2});
    call.run({.bias = bias::Dense<float>(values, gradient)});
  };
  const auto view = [](std::vector<float>& of, index B, index H, index T, index S) {
    return ScoreView<float>::contiguous(of.data(), B, H, T, S);
  };
  run(view(x, 1, 4, 3, 5), view(dx, 1, 4, 3, 5));
  run(view(x, 1, 4, 3, 5), {});
  EXPECT_THROWS(run(view(x, 2, 3, 3, 5), {}), kShape,
                "the dense bias must be [2 or 1, 4 or 1, 3 or 1, 5]; it is [2, 3, 3, 5]");
  EXPECT_THROWS(run(view(x, 1, 1, 1, 1), {}), kShape, "it is [1, 1, 1, 1]");
  EXPECT_THROWS(run({nullptr, 1, 1, 3, 5, 0, 0, 5}, {}), kShape, "but no data");
  EXPECT_THROWS(run({x.data(), 1, 1, 3, 5, 0, 0, -5}, {}), kShape, "negative stride");
  EXPECT_THROWS(run(view(x, 1, 4, 3, 5), view(dx, 1, 4, 1, 5)), kShape,
                "the gradient of the dense bias must be [B=1, H=4, 3, 5]; it is [1, 4, 1, 5]");
  EXPECT_THROWS(run(view(x, 1, 1, 3, 5), {dx.data(), 1, 1, 3, 5, 0, 0, 4}), kShape,
                "rows must not overlap");
}

}  // namespace
}  // namespace fovea::testing
