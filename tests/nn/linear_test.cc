// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Linear, StartsWithoutBiasAndWithSpread) {
  ParameterSet set({});
  const Linear layer({.in = 3, .out = 2}, ParameterScope(set)["head"]);
  EXPECT_THAT(to_vector(layer.bias()->value.vec<float>()), testing::Each(0));
  EXPECT_EQ(layer.weight().name, "head.weight");
  EXPECT_EQ(layer.weight().decay, Decay::kYes);
  EXPECT_EQ(layer.bias()->decay, Decay::kNo);
  EXPECT_EQ(set.size(), 8);
}

TEST(Linear, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const Linear layer({.in = 4, .out = 3}, ParameterScope(set));
  const auto x = noise<double>(20);
  expect_gradients(set, [&](Tape& tape) {
    return layer.forward(tape, tape.constant(Rows<const double>(x.data(), 5, 4)),
                         Activation::kGelu);
  });
}

// The change of a weight is seen as soon as its version says so.
TEST(Linear, FollowsItsWeight) {
  ParameterSet set({});
  const Linear layer({.in = 1, .out = 1, .bias = Biases::kNone}, ParameterScope(set));
  const float x = 3;
  const auto y = [&](Tape& t) { return layer.forward(t, t.constant(Rows<const float>(&x, 1, 1))); };
  for (const float w : {2.0f, 5.0f}) {
    layer.weight().value.vec<float>()[0] = w;
    ++layer.weight().version;
    EXPECT_THAT(output_of(y), testing::ElementsAre(3 * w));
  }
}

TEST(Linear, RefusesSizesThatAreNotPositive) {
  ParameterSet set({});
  EXPECT_THROWS((Linear({.in = 0, .out = 2}, ParameterScope(set))), kShape, "in is 0, out is 2");
}

}  // namespace
}  // namespace fovea
