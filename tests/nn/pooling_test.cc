// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/pooling.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/nn/convolution_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index kWidth = 5;
const Offsets kOffsets = {0, 3, 3, 4, 11};

TEST(Pooling, OnlyAttentionHasAParameter) {
  for (const auto& [kind, name] : enum_names(PoolingKind{})) {
    ParameterSet set({.seed = 1});
    const Pooling pooling(kind, kWidth, ParameterScope(set)["pooling"]);
    const bool has_query = kind == PoolingKind::kAttention;
    ASSERT_EQ(set.parameters().size(), has_query ? 1u : 0u) << name;
    if (!has_query) continue;
    EXPECT_EQ(set.parameters()[0]->name, "pooling.query");
    EXPECT_EQ(set.parameters()[0]->value.shape(), Shape({1, kWidth}));
  }
}

std::vector<float> pooled(PoolingKind kind, const std::vector<float>& x, const Offsets& offsets,
                          bool fresh = false) {
  ParameterSet set({.seed = 1});
  const Pooling pooling(kind, kWidth, ParameterScope(set));
  if (!fresh) randomise(set);
  return apply(pooling, x, kWidth, offsets);
}

TEST(Pooling, IsWhatItsNameSays) {
  std::vector<float> x(11 * kWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const auto first_column = [&](PoolingKind kind) {
    const auto y = pooled(kind, x, kOffsets, true);
    return std::vector<float>{y[0], y[kWidth], y[2 * kWidth], y[3 * kWidth]};
  };
  EXPECT_THAT(first_column(PoolingKind::kMean), testing::ElementsAre(5, 0, 15, 35));
  EXPECT_THAT(first_column(PoolingKind::kMax), testing::ElementsAre(10, 0, 15, 50));
  EXPECT_THAT(first_column(PoolingKind::kFirst), testing::ElementsAre(0, 0, 15, 20));
  EXPECT_THAT(first_column(PoolingKind::kLast), testing::ElementsAre(10, 0, 15, 50));
  const auto fresh = first_column(PoolingKind::kAttention);
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_NEAR(fresh[s], first_column(PoolingKind::kMean)[s], 1e-5) << "a query of zeros";
  }
}

// The end of columns that were read backwards is the first row.
TEST(Pooling, LastIsTheEndOfEachDirection) {
  std::vector<float> x(11 * kWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  ParameterSet set({.seed = 1});
  const Pooling both(PoolingKind::kLast, kWidth, ParameterScope(set), 2);
  EXPECT_THAT(apply(both, x, kWidth, kOffsets),
              testing::ElementsAre(10, 11, 12, 3, 4, 0, 0, 0, 0, 0, 15, 16, 17, 18, 19, 50, 51, 52,
                                   23, 24));
  EXPECT_THROWS(Pooling(PoolingKind::kLast, kWidth, ParameterScope(set), kWidth), kShape,
                "cannot be read backwards");
}

TEST(Pooling, ASequenceAloneHasTheBitsOfOneAmongOthers) {
  const auto x = noise(11 * kWidth);
  for (const auto& [kind, name] : enum_names(PoolingKind{})) {
    const auto all = pooled(kind, x, kOffsets);
    const auto alone = pooled(kind, rows_of(x, kWidth, 4, 11), {0, 7});
    EXPECT_EQ(alone, rows_of(all, kWidth, 3, 4)) << name;
  }
}

TEST(Pooling, GradientIsThatOfTheForward) {
  const auto x = noise<double>(11 * kWidth);
  ParameterSet set = float64_set();
  const Pooling pooling(PoolingKind::kAttention, kWidth, ParameterScope(set));
  expect_gradients(set, [&](Tape& tape) {
    return pooling.forward(tape, tape.constant(as_rows(x, kWidth)), sequences(kOffsets));
  });
}

TEST(Pooling, TheWeightsAreThoseOfTheMean) {
  const auto x = noise(11 * kWidth);
  ParameterSet set({.seed = 1});
  const Pooling pooling(PoolingKind::kAttention, kWidth, ParameterScope(set));
  randomise(set);
  Tape tape(Context(1), TapeMode::kInference);
  const Variable rows = tape.constant(as_rows(x, kWidth));
  const auto y = apply(pooling, x, kWidth, kOffsets);
  const std::vector<double> weights = pooling.weights(rows, sequences(kOffsets));
  ASSERT_EQ(weights.size(), 11u);
  for (std::size_t s = 0; s < 4; ++s) {
    double total = 0;
    std::vector<double> mean(kWidth, 0);
    for (auto n = static_cast<std::size_t>(kOffsets[s]);
         n < static_cast<std::size_t>(kOffsets[s + 1]); ++n) {
      total += weights[n];
      for (std::size_t c = 0; c < kWidth; ++c) mean[c] += weights[n] * double{x[n * kWidth + c]};
    }
    EXPECT_NEAR(total, s == 1 ? 0 : 1, 1e-15);
    for (std::size_t c = 0; c < kWidth; ++c) EXPECT_NEAR(mean[c], y[s * kWidth + c], 1e-6);
  }
  EXPECT_EQ(pooling.weights(rows, {}).size(), 11u) << "one sequence";
  const Pooling other(PoolingKind::kMean, kWidth, ParameterScope(set));
  EXPECT_THROWS((other.weights(rows, {})), kShape, "only attention and the maximum have weights");
}

TEST(Pooling, OfTheMaximumTheWeightsAreTheSharesOfTheColumns) {
  ParameterSet set({.seed = 1});
  const Pooling pooling(PoolingKind::kMax, 4, ParameterScope(set));
  Tape tape(Context(1), TapeMode::kInference);
  const std::vector<float> x = {1, 0, 5,  2,  // one row alone
                                1, 0, -2, 2,  // its 1 comes first, its column of zeros says nothing
                                1, 0, 3,  1, 0, 0, 3, 7};
  const std::vector<std::int32_t> offsets = {0, 1, 1, 4};
  EXPECT_THAT(pooling.weights(tape.constant(as_rows(x, 4)), sequences(offsets)),
              testing::ElementsAre(1, 0.25, 0.25, 0.25));
}

TEST(Pooling, RefusesRowsOfAnotherWidth) {
  EXPECT_THROWS((pooled(PoolingKind::kMean, noise(3 * kWidth), {0, 5}), 0), kShape, "");
  ParameterSet set({.seed = 1});
  const Pooling pooling(PoolingKind::kMean, 4, ParameterScope(set));
  EXPECT_THROWS((apply(pooling, noise(3 * kWidth), kWidth, {0, 3}), 0), kShape,
                "pooling: x must have 4 columns; it has 5");
}

}  // namespace
}  // namespace fovea
