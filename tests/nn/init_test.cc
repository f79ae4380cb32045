// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fovea/nn/module.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

std::vector<double> drawn(const Init& init, index n = 20000) {
  Tensor tensor({n}, DType::kFloat64);
  initialise(tensor, init, Random(1, RandomUse::kInit));
  return to_vector(tensor.vec<double>());
}

TEST(Init, NormalHasItsDeviation) {
  double mean = 0, square = 0;
  for (const double x : drawn(Init::normal(0.02))) {
    mean += x / 20000;
    square += x * x / 20000;
  }
  EXPECT_NEAR(mean, 0, 0.0005);
  EXPECT_NEAR(std::sqrt(square), 0.02, 0.0004);
}

TEST(Init, UniformStaysWithinItsEnds) {
  const auto values = drawn(linear_uniform_init(16));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -0.25);
  EXPECT_LT(*high, 0.25);
  EXPECT_LT(*low, -0.249);
  EXPECT_GT(*high, 0.249);
}

TEST(Init, GlorotsBoundIsThatOfBothSizes) {
  const Init init = glorot_uniform_init(40, 56);
  EXPECT_DOUBLE_EQ(init.b, 0.25);
  EXPECT_DOUBLE_EQ(init.a, -0.25);
}

TEST(Init, ResidualsShrinkWithTheRootOfTwiceTheLayers) {
  EXPECT_DOUBLE_EQ(residual_init(8).b, 0.02 / 4);
}

TEST(Init, BothTypesGetTheSameNumbers) {
  Tensor single({100}), wide({100}, DType::kFloat64);
  initialise(single, Init::normal(1), Random(3, RandomUse::kInit));
  initialise(wide, Init::normal(1), Random(3, RandomUse::kInit));
  EXPECT_EQ(to_vector(single.vec<float>()), to_vector(wide.to(DType::kFloat32).vec<float>()));
}

}  // namespace
}  // namespace fovea
