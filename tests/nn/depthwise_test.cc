// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/depthwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/isa.h"
#include "tests/nn/pieces.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index C = 70;  // no multiple of any vector
constexpr std::int32_t kOffsets[] = {0, 1, 18, 18, 20, 61};
constexpr index kRows = 61;

// By the formula, in U.
template <class U>
std::vector<U> definition(const std::vector<float>& x, const std::vector<float>& weight,
                          const std::vector<float>& bias, index width) {
  std::vector<U> y;
  for (std::size_t s = 0; s + 1 < std::size(kOffsets); ++s) {
    for (index t = kOffsets[s]; t < kOffsets[s + 1]; ++t) {
      for (index c = 0; c < C; ++c) {
        U sum = bias[c];
        for (index j = 0; j < width; ++j) {
          const index from = t - (width - 1) + j;
          if (from >= kOffsets[s]) sum += U{weight[j * C + c]} * U{x[from * C + c]};
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

double largest_error(const std::vector<float>& y, const std::vector<double>& exact) {
  double error = 0;
  for (std::size_t n = 0; n < y.size(); ++n) error = std::max(error, std::abs(y[n] - exact[n]));
  return error;
}

TEST(DepthwiseConvolution, HasTheParametersOfConv1dWithAGroupForEachColumn) {
  ParameterSet set({});
  const DepthwiseConvolution layer({.columns = 5, .width = 3}, ParameterScope(set));
  ASSERT_EQ(set.parameters().size(), 2);
  EXPECT_EQ(set.find("weight")->value.shape(), (Shape{3, 5}));
  EXPECT_EQ(set.find("bias")->value.shape(), (Shape{5}));
  EXPECT_EQ(layer.width(), 5);
  ParameterSet plain({});
  const DepthwiseConvolution without({.columns = 5, .bias = Biases::kNone}, ParameterScope(plain));
  EXPECT_EQ(plain.size(), 4 * 5);
}

TEST(DepthwiseConvolution, ErrorIsAtMostTwiceThatOfPlainLoops) {
  const auto x = noise(kRows * C, 1), bias = noise(C, 3);
  for (const index width : {2, 4, 7}) {
    const auto weight = noise(width * C, 2);
    const auto exact = definition<double>(x, weight, bias, width);
    const double plain = largest_error(definition<float>(x, weight, bias, width), exact);
    for_each_isa([&] {
      const auto y = output_of([&](Tape& t) {
        return depthwise_convolution(t, t.constant(Rows<const float>(x.data(), kRows, C)),
                                     t.constant(Rows<const float>(weight.data(), width, C)),
                                     t.constant(Rows<const float>(bias.data(), 1, C)),
                                     lay_out_rows(t, kRows, kOffsets, {}));
      });
      EXPECT_LE(largest_error(y, exact), 2 * plain) << "width " << width;
    });
  }
}

TEST(DepthwiseConvolution, GradientIsThatOfTheForward) {
  constexpr index N = 9, kColumns = 3;
  constexpr std::int32_t kShort[] = {0, 1, 1, 7, N};
  for (const index width : {2, 5}) {
    auto set = float64_set();
    const ParameterScope scope(set);
    Parameter& x = scope.add("x", {N, kColumns}, Init::zeros());
    const DepthwiseConvolution layer({.columns = kColumns, .width = width}, scope);
    expect_gradients(set, [&](Tape& t) {
      return layer.forward(t, t.parameter(x), {lay_out_rows(t, N, kShort, {})});
    });
  }
}

struct Gradients {
  std::vector<float> dx, dweight, dbias;
  bool operator==(const Gradients&) const = default;
};

Gradients gradients(const std::vector<float>& x, index rows, int threads) {
  ParameterSet set({});
  const DepthwiseConvolution layer({.columns = C, .width = 4}, ParameterScope(set));
  Tape tape{Context(threads)};
  const Variable input = tape.input(Rows<const float>(x.data(), rows, C));
  const Variable y = layer.forward(tape, input, {{}});
  tape.backward(sum(tape, multiply(tape, y, y)));
  return {to_vector(input.gradient<float>()), to_vector(set.find("weight")->gradient.rows<float>()),
          to_vector(set.find("bias")->gradient.vec<float>())};
}

TEST(DepthwiseConvolution, SameBitsForAnyNumberOfThreads) {
  constexpr index kMany = 3000;
  const auto x = noise(kMany * C);
  const Gradients one = gradients(x, kMany, 1);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(gradients(x, kMany, threads), one);
}

TEST(DepthwiseConvolution, GoesOnWithTheSameBits) {
  constexpr index N = 17;
  const auto x = noise(N * C);
  for (index width = 1; width <= 7; ++width) {
    for_each_isa([&] {
      ParameterSet set({});
      const DepthwiseConvolution layer({.columns = C, .width = width}, ParameterScope(set));
      randomise(set);
      expect_same_in_pieces(layer, x, N);
    });
  }
}

TEST(DepthwiseConvolution, RefusesWhatDoesNotFit) {
  ParameterSet set({});
  const DepthwiseConvolution layer({.columns = 4}, ParameterScope(set)["a"]);
  const DepthwiseConvolution wide({.columns = 5}, ParameterScope(set)["b"]);
  const auto x = noise(20);
  Tape tape(Context(1), TapeMode::kInference);
  const auto rows = [&](index columns) {
    return tape.constant(Rows<const float>(x.data(), 2, columns));
  };
  EXPECT_THROWS(layer.forward(tape, rows(5), {{}}), kShape, "weight must be [4, 5]");
  ConvolutionState state;
  layer.forward(tape, rows(4), state);
  EXPECT_THROWS(wide.forward(tape, rows(5), state), kShape, "the state must have 5 columns");
  Tape training{Context(1)};
  EXPECT_THROWS(
      layer.forward(training, training.constant(Rows<const float>(x.data(), 2, 4)), state), kShape,
      "one sequence in inference mode");
  EXPECT_THROWS(DepthwiseConvolution({.columns = 4, .width = 0}, ParameterScope(set)["c"]), kShape,
                "sizes must be positive");
}

}  // namespace
}  // namespace fovea
