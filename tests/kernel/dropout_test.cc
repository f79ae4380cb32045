// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/dropout.h"

#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);
constexpr DropoutKey kKey{.seed = 7, .step = 123456789012, .layer = 3};

std::vector<SampleRow> rows_of(std::uint64_t sample, index N) {
  std::vector<SampleRow> rows;
  for (index n = 0; n < N; ++n) rows.push_back({sample, static_cast<std::uint32_t>(n)});
  return rows;
}

template <class T>
Matrix<T> dropped(const Context& ctx, const DropoutMask& mask, const Matrix<T>& x) {
  Matrix<T> y(x.rows(), x.columns());
  dropout_forward(ctx, mask, x.in(), y.view());
  return y;
}

TEST(Dropout, IsTheDocumentedFunctionOfItsCounters) {
  const auto rows = rows_of(0x123456789a, 5);
  for_each_isa([&] {
    Random random(60, RandomUse::kTest);
    for (const index C : kColumns)
      for (const double p : {1e-9, 0.1, 0.5, 0.999999}) {
        const DropoutMask mask{p, kKey, {rows.data(), 5}};
        const auto x = Matrix<float>::random(random, 5, C);
        const auto y = dropped(kContext, mask, x);
        const auto z = dropped(kContext, mask, Matrix<double>(x));
        for (index n = 0; n < 5; ++n)
          for (index c = 0; c < C; ++c) {
            const bool kept = reference::dropout_keeps(mask, n, c);
            const double exact = kept ? static_cast<double>(x.at(n, c)) / (1 - p) : 0.0;
            ASSERT_EQ(y.at(n, c) != 0, kept) << n << ", " << c;
            ASSERT_NEAR(y.at(n, c), exact, std::abs(exact) * 0x1p-22);
            ASSERT_NEAR(z.at(n, c), exact, std::abs(exact) * 1e-15);
          }
        EXPECT_TRUE(y.padding_is_untouched());
      }
  });
}

// Frozen: a model trained with one version resumes with the next.
TEST(Dropout, TheMaskOfAKeyIsFrozen) {
  const DropoutMask mask{0.5, kKey, {}};
  std::string kept;
  for (index c = 0; c < 32; ++c) kept += reference::dropout_keeps(mask, 2, c) ? '1' : '0';
  EXPECT_EQ(kept, "11001110001111001010111110111101");
}

TEST(Dropout, KeepsTheExpectedShareAndTheMean) {
  const Matrix<float> x(400, 500, 1.0f);
  for (const double p : {0.1, 0.5, 0.9}) {
    double sum = 0;
    for (const double y : dropped(kContext, {p, kKey, {}}, x).values()) sum += y;
    // The mean of 200,000 is 1 within five deviations.
    EXPECT_NEAR(sum / 200000, 1, 5 * std::sqrt(p / (1 - p) / 200000));
  }
}

TEST(Dropout, WithoutItIsAnExactCopy) {
  Random random(61, RandomUse::kTest);
  const auto x = Matrix<float>::random(random, 7, 33);
  EXPECT_TRUE(dropped(kContext, {0, kKey, {}}, x) == x);
}

TEST(Dropout, SeedStepLayerSampleAndRowAllMatter) {
  const Matrix<float> x(1, 64, 1.0f);
  const auto mask_of = [&](DropoutKey key, std::uint64_t sample, std::uint32_t row) {
    const SampleRow at{sample, row};
    return dropped(kContext, {0.5, key, {&at, 1}}, x);
  };
  const auto base = mask_of({1, 1, 1}, 1, 1);
  EXPECT_FALSE(base == mask_of({2, 1, 1}, 1, 1));
  EXPECT_FALSE(base == mask_of({1, 2, 1}, 1, 1));
  EXPECT_FALSE(base == mask_of({1, 1 + (std::uint64_t{1} << 40), 1}, 1, 1));
  EXPECT_FALSE(base == mask_of({1, 1, 2}, 1, 1));
  EXPECT_FALSE(base == mask_of({1, 1, 1}, 2, 1));
  EXPECT_FALSE(base == mask_of({1, 1, 1}, 1 + (std::uint64_t{1} << 40), 1));
  EXPECT_FALSE(base == mask_of({1, 1, 1}, 1, 2));
}

TEST(Dropout, OrderOfTheBatchChangesNothing) {
  Random random(62, RandomUse::kTest);
  const auto x = Matrix<float>::random(random, 2, 50);
  Matrix<float> swapped(2, 50);
  for (index c = 0; c < 50; ++c) {
    swapped.at(0, c) = x.at(1, c);
    swapped.at(1, c) = x.at(0, c);
  }
  const std::vector<SampleRow> rows = {{5, 0}, {9, 3}}, other = {{9, 3}, {5, 0}};
  const auto y = dropped(kContext, {0.3, kKey, {rows.data(), 2}}, x);
  const auto z = dropped(kContext, {0.3, kKey, {other.data(), 2}}, swapped);
  for (index c = 0; c < 50; ++c) {
    EXPECT_EQ(y.at(0, c), z.at(1, c));
    EXPECT_EQ(y.at(1, c), z.at(0, c));
  }
}

TEST(Dropout, BackwardMasksAsForward) {
  for_each_isa([] {
    Random random(63, RandomUse::kTest);
    auto x = Matrix<double>::random(random, 3, 70);
    const auto dy = Matrix<double>::random(random, 3, 70);
    const DropoutMask mask{0.4, kKey, {}};
    Matrix<double> dx(3, 70);
    dropout_backward(kContext, mask, dy.in(), dx.view());
    expect_gradient(
        x, dx, [&] { return dot(dropped(kContext, mask, x), dy); }, "x");
  });
}

TEST(DropoutAdd, IsTheSum) {
  for_each_isa([] {
    Random random(64, RandomUse::kTest);
    for (const double p : {0.0, 0.3})
      for (const index C : kColumns) {
        const auto x = Matrix<float>::random(random, 3, C), f = Matrix<float>::random(random, 3, C);
        Matrix<float> y(3, C);
        dropout_add_forward(kContext, {p, kKey, {}}, x.in(), f.in(), y.view());
        const auto masked = dropped(kContext, {p, kKey, {}}, f);
        for (index n = 0; n < 3; ++n)
          for (index c = 0; c < C; ++c) ASSERT_EQ(y.at(n, c), x.at(n, c) + masked.at(n, c));
      }
  });
}

TEST(Dropout, SameBitsForAnyNumberOfThreads) {
  Random random(65, RandomUse::kTest);
  const auto x = Matrix<float>::random(random, 700, 131);
  expect_same_for_threads([&](const Context& ctx) { return dropped(ctx, {0.2, kKey, {}}, x); });
}

TEST(Dropout, SaysWhatIsWrong) {
  Matrix<float> x(2, 5), y(2, 4);
  EXPECT_THROWS(dropped(kContext, {1.0, kKey, {}}, x), kOptionValue,
                "dropout: p must be in [0, 1); it is 1");
  EXPECT_THROWS(dropped(kContext, {-0.1, kKey, {}}, x), kOptionValue, "it is -0.1");
  EXPECT_THROWS(dropped(kContext, {std::nan(""), kKey, {}}, x), kOptionValue, "it is nan");
  const auto rows = rows_of(0, 3);
  EXPECT_THROWS(dropped(kContext, {0.1, kKey, {rows.data(), 3}}, x), kShape,
                "dropout: rows must be [N=2]; it is [3]");
  EXPECT_THROWS(dropout_forward(kContext, {0.1, kKey, {}}, x.in(), y.view()), kShape,
                "dropout: y must be [2, 5]; it is [2, 4]");
}

}  // namespace
}  // namespace fovea
