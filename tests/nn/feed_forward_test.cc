// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/feed_forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

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

double value_of(LayerActivation f, double x) {
  if (f == LayerActivation::kReglu) return std::max(x, 0.0);
  if (f == LayerActivation::kGeglu) return x * std::erfc(-x / std::sqrt(2)) / 2;
  if (f == LayerActivation::kGegluTanh) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  return x / (1 + std::exp(-x));
}

// The product of a matrix [rows, columns] and a vector.
std::vector<double> times(const Parameter& weight, const std::vector<double>& x) {
  const Rows<const double> w = weight.value.rows<double>();
  std::vector<double> y;
  for (index n = 0; n < w.rows; ++n) y.push_back(std::inner_product(x.begin(), x.end(), w[n], 0.0));
  return y;
}

TEST(FeedForward, GatedIsItsFormula) {
  for (const LayerActivation f : {LayerActivation::kReglu, LayerActivation::kGeglu,
                                  LayerActivation::kSwiglu, LayerActivation::kGegluTanh}) {
    auto set = float64_set();
    const FeedForward layer({.width = 4, .hidden = 6, .activation = f, .bias = Biases::kNone},
                            ParameterScope(set));
    EXPECT_EQ(set.size(), 3 * 4 * 6);
    randomise(set);
    const auto x = noise<double>(4);
    const auto y = output_of<double>(
        [&](Tape& t) { return layer.forward(t, t.constant(Rows<const double>(x.data(), 1, 4))); });
    std::vector<double> hidden = times(*set.find("in.weight"), x);
    const auto gates = times(*set.find("gate.weight"), x);
    for (std::size_t n = 0; n < hidden.size(); ++n) hidden[n] *= value_of(f, gates[n]);
    EXPECT_THAT(
        y, testing::Pointwise(testing::DoubleNear(1e-12), times(*set.find("out.weight"), hidden)))
        << to_string(f);
  }
}

TEST(FeedForward, AnUngatedOneHasNoGate) {
  ParameterSet set({});
  const FeedForward layer({.width = 4, .hidden = 6, .activation = LayerActivation::kSilu},
                          ParameterScope(set));
  EXPECT_EQ(set.find("gate.weight"), nullptr);
  EXPECT_EQ(set.parameters().size(), 4);
}

TEST(FeedForward, GradientIsThatOfTheForward) {
  for (const LayerActivation f : {LayerActivation::kSilu, LayerActivation::kGeglu,
                                  LayerActivation::kSwiglu, LayerActivation::kGegluTanh}) {
    auto set = float64_set();
    const FeedForward layer({.width = 4, .hidden = 6, .activation = f}, ParameterScope(set));
    const auto x = noise<double>(20);
    expect_gradients(set, [&](Tape& tape) {
      return layer.forward(tape, tape.constant(Rows<const double>(x.data(), 5, 4)));
    });
  }
}

}  // namespace
}  // namespace fovea
