// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/nn/support.h"

namespace fovea {
namespace {

const float kG11[] = {1, 2, 4, 8};

std::vector<float> fresh_norm(const NormOptions& options) {
  ParameterSet set({});
  const NormLayer norm(options, ParameterScope(set));
  return output_of(
      [&](Tape& t) { return norm.forward(t, t.constant(Rows<const float>(kG11, 1, 4))); });
}

// Both variants of one row, computed in float64 without any library.
TEST(NormLayer, MatchesGoldenValues) {
  EXPECT_THAT(fresh_norm({.width = 4}),
              testing::Pointwise(testing::FloatNear(1e-6f), {-1.025754575496f, -0.652752911679f,
                                                             0.093250415954f, 1.585257071221f}));
  EXPECT_THAT(fresh_norm({.width = 4, .variant = LayerNormVariant::kUnbiased}),
              testing::Pointwise(testing::FloatNear(1e-6f), {-0.88832985144f, -0.565300814552f,
                                                             0.080757259222f, 1.37287340677f}));
}

TEST(NormLayer, RootMeanSquareHasAGainAlone) {
  ParameterSet set({});
  const NormLayer norm({.width = 4, .kind = NormKind::kRms}, ParameterScope(set)["norm"]);
  ASSERT_EQ(set.parameters().size(), 1u);
  EXPECT_EQ(set.parameters()[0]->name, "norm.weight");
  EXPECT_NEAR(fresh_norm({.width = 4, .kind = NormKind::kRms})[0], 1 / std::sqrt(21.25), 1e-6);
}

class EveryNorm : public testing::TestWithParam<NormOptions> {};

TEST_P(EveryNorm, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const NormLayer norm(GetParam(), ParameterScope(set));
  const auto x = noise<double>(20);
  expect_gradients(set, [&](Tape& tape) {
    return norm.forward(tape, tape.constant(Rows<const double>(x.data(), 5, 4)));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Norms, EveryNorm,
    testing::Values(NormOptions{.width = 4}, NormOptions{.width = 4, .bias = Biases::kNone},
                    NormOptions{.width = 4, .variant = LayerNormVariant::kUnbiased},
                    NormOptions{.width = 4, .kind = NormKind::kRms}));

}  // namespace
}  // namespace fovea
