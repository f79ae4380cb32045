// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/feed_forward.h"

#include <gtest/gtest.h>

#include "tests/nn/support.h"

namespace fovea {
namespace {

TEST(FeedForward, HasTheParametersOfItsFormula) {
  ParameterSet set({.memory = ParameterMemory::kShapesOnly});
  const FeedForward layer({.width = 128, .hidden = 512}, ParameterScope(set));
  EXPECT_EQ(set.size(), 131712);
}

// It is two convolutions of window 1 (Vaswani et al. 2017, section 3.3): rows see no other row.
TEST(FeedForward, TreatsEachRowAlone) {
  ParameterSet set({});
  const FeedForward layer({.width = 4, .hidden = 8}, ParameterScope(set));
  const auto x = noise(20);
  const auto forward = [&](index begin, index end) {
    return output_of([&](Tape& t) {
      return layer.forward(t, t.constant(Rows<const float>(x.data(), 5, 4).slice(begin, end)));
    });
  };
  const auto all = forward(0, 5);
  for (index n = 0; n < 5; ++n) {
    EXPECT_EQ(forward(n, n + 1), std::vector<float>(all.begin() + 4 * n, all.begin() + 4 * n + 4));
  }
}

TEST(FeedForward, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const FeedForward layer({.width = 4, .hidden = 6, .activation = LayerActivation::kSilu},
                          ParameterScope(set));
  const auto x = noise<double>(20);
  expect_gradients(set, [&](Tape& tape) {
    return layer.forward(tape, tape.constant(Rows<const double>(x.data(), 5, 4)));
  });
}

}  // namespace
}  // namespace fovea
