// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/nn/feed_forward.h"
#include "tests/isa.h"
#include "tests/nn/convolution_golden.h"
#include "tests/nn/convolution_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

// ---- against PyTorch

double golden_value(index number, index i) {
  return static_cast<double>((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5;
}

template <class T>
std::vector<T> golden_values(index number, index n) {
  std::vector<T> values;
  for (index i = 0; i < n; ++i) values.push_back(static_cast<T>(golden_value(number, i)));
  return values;
}

// The output, and the gradients of sum(output * golden values) for x and each parameter.
template <class Layer, class Options>
std::vector<std::vector<double>> golden_results(const Options& options) {
  auto set = float64_set();
  const Layer layer(options, ParameterScope(set));
  index number = 1;
  for (Parameter* p : set.parameters()) {
    const auto values = golden_values<double>(number++, p->value.size());
    std::copy(values.begin(), values.end(), p->value.vec<double>().begin());
  }
  Tape tape{Context(2)};
  const Offsets offsets = {0, 3, 3, 4, 11, 13};
  const auto input = golden_values<double>(0, 13 * options.in);
  const Variable x = tape.input(as_rows(input, options.in));
  const Variable y = layer.forward(tape, x, sequences(offsets));
  const auto weights = golden_values<double>(50, y.rows() * y.columns());
  tape.backward(sum(tape, multiply(tape, y, tape.constant(as_rows(weights, y.columns())))));
  std::vector<std::vector<double>> results = {to_vector(y.value<double>()),
                                              to_vector(x.gradient<double>())};
  for (Parameter* p : set.parameters()) {
    results.push_back(to_vector(p->finished_gradient().vec<double>()));
  }
  return results;
}

// The bound: twice the error of PyTorch in float32 and 4 ulp; a double is 2^29 times finer.
template <class Layer, class Options>
void expect_golden(const golden::Form<Options>& form) {
  SCOPED_TRACE(form.name);
  const double bound = (2 * form.plain_largest + 4 * 0x1p-23) * 0x1p-29;
  const auto results = golden_results<Layer>(form.options);
  ASSERT_EQ(results.size(), form.results.size());
  for (std::size_t r = 0; r < results.size(); ++r) {
    double square = 0, projection = 0;
    for (std::size_t i = 0; i < results[r].size(); ++i) {
      square += results[r][i] * results[r][i];
      projection +=
          results[r][i] * golden_value(100 + static_cast<index>(r), static_cast<index>(i));
    }
    const auto n = static_cast<double>(results[r].size());
    const golden::Numbers& expected = form.results[r];
    // What an error of `bound` in every element can do to a norm, and to a sum with weights of at
    // most a half.
    EXPECT_NEAR(std::sqrt(square), expected.norm, bound * expected.largest * std::sqrt(n)) << r;
    EXPECT_NEAR(projection, expected.projection, bound * expected.largest * n / 2) << r;
  }
}

TEST(ConvolutionLayer, HasTheOutputsAndGradientsOfConv1d) {
  for_each_isa([] {
    for (const auto& form : golden::kConvolutions) expect_golden<ConvolutionLayer>(form);
  });
}

TEST(TextCnn, HasTheOutputsAndGradientsOfConv1dAndMax) {
  for_each_isa([] {
    for (const auto& form : golden::kTextCnns) expect_golden<TextCnn>(form);
  });
}

// ---- what the rows see

// Spec L2: layers of width 3 on top of each other see one more row on each side per layer.
TEST(ConvolutionLayer, StackOfThreesSeesTwiceItsLayersAndOne) {
  constexpr index kRows = 15, kMiddle = 7, kWidth = 4;
  ParameterSet set({});
  std::vector<ConvolutionLayer> layers;
  for (index l = 0; l < 3; ++l) {
    layers.emplace_back(ConvolutionLayerOptions{.in = kWidth, .out = kWidth},
                        ParameterScope(set)[l]);
  }
  randomise(set);
  auto x = noise(kRows * kWidth);
  for (std::size_t depth = 1; depth <= layers.size(); ++depth) {
    const auto forward = [&] {
      return output_of([&](Tape& t) {
        Variable y = t.constant(as_rows(x, kWidth));
        for (std::size_t l = 0; l < depth; ++l) y = layers[l].forward(t, y, PackedRows{});
        return y;
      });
    };
    const auto before = forward();
    x[kMiddle * kWidth] += 1;
    const auto after = forward();
    x[kMiddle * kWidth] -= 1;
    const auto reach = static_cast<index>(depth);
    for (index row = 0; row < kRows; ++row) {
      const bool sees = row >= kMiddle - reach && row <= kMiddle + reach;
      EXPECT_EQ(rows_of(before, kWidth, row, row + 1) != rows_of(after, kWidth, row, row + 1), sees)
          << "row " << row << " of " << depth << " layers";
    }
  }
}

TEST(ConvolutionLayer, CausalRowsDoNotSeeLaterOnes) {
  for (const index dilation : {1, 2}) {
    ParameterSet set({});
    const ConvolutionLayer layer({.in = 5,
                                  .out = 6,
                                  .width = 4,
                                  .padding = Padding::kCausal,
                                  .dilation = dilation,
                                  .gated = true},
                                 ParameterScope(set));
    randomise(set);
    auto x = noise(20 * 5);
    const auto before = apply(layer, x, 5, {0, 20});
    for (index t = 0; t < 20; ++t) {
      auto changed = x;
      changed[static_cast<std::size_t>(t * 5)] += 1;
      const auto after = apply(layer, changed, 5, {0, 20});
      EXPECT_EQ(rows_of(before, 6, 0, t), rows_of(after, 6, 0, t));
      EXPECT_NE(rows_of(before, 6, t, t + 1), rows_of(after, 6, t, t + 1));
    }
  }
}

// ---- as a layer

// Spec L3: the position-wise network is a convolution of width 1, an activation, and another.
TEST(ConvolutionLayer, TwoOfWidthOneAreTheFeedForwardNetwork) {
  ParameterSet set({});
  const FeedForward network({.width = 24, .hidden = 96, .activation = LayerActivation::kGelu},
                            ParameterScope(set)["network"]);
  const ConvolutionLayer in({.in = 24, .out = 96, .width = 1, .activation = Activation::kGelu},
                            ParameterScope(set)["in"]);
  const ConvolutionLayer out({.in = 96, .out = 24, .width = 1}, ParameterScope(set)["out"]);
  randomise(set);
  for (const std::string name : {"in.weight", "in.bias", "out.weight", "out.bias"}) {
    const auto shared = to_vector(set.find("network." + name)->value.vec<float>());
    std::copy(shared.begin(), shared.end(), set.find(name)->value.vec<float>().begin());
    ++set.find(name)->version;
  }
  const auto x = noise(130 * 24);
  for_each_isa([&] {
    const auto expected =
        output_of([&](Tape& t) { return network.forward(t, t.constant(as_rows(x, 24))); });
    const Offsets offsets = {0, 1, 60, 130};
    const auto got = output_of([&](Tape& t) {
      const PackedRows rows = sequences(offsets);
      return out.forward(t, in.forward(t, t.constant(as_rows(x, 24)), rows), rows);
    });
    EXPECT_EQ(got, expected);
  });
}

TEST(ConvolutionLayer, GradientIsThatOfTheForward) {
  for (const bool gated : {false, true}) {
    auto set = float64_set();
    const ConvolutionLayer layer({.in = 4, .out = 3, .gated = gated}, ParameterScope(set));
    const auto x = noise<double>(20);
    const Offsets offsets = {0, 1, 5};
    expect_gradients(set, [&](Tape& tape) {
      return layer.forward(tape, tape.constant(as_rows(x, 4)), sequences(offsets));
    });
  }
}

TEST(TextCnn, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const TextCnn layer({.in = 4, .out = 3, .widths = {2, 3}}, ParameterScope(set));
  EXPECT_EQ(layer.columns(), 6);
  const auto x = noise<double>(28);
  const Offsets offsets = {0, 4, 4, 7};
  expect_gradients(set, [&](Tape& tape) {
    return layer.forward(tape, tape.constant(as_rows(x, 4)), sequences(offsets));
  });
}

TEST(ConvolutionLayer, HasParametersOfConv1dWithChannelsLast) {
  ParameterSet set({});
  const ConvolutionLayer plain({.in = 3, .out = 2, .width = 5}, ParameterScope(set)["a"]);
  const ConvolutionLayer gated({.in = 3, .out = 2, .gated = true}, ParameterScope(set)["b"]);
  EXPECT_EQ(plain.weight().name, "a.weight");
  EXPECT_EQ(plain.weight().value.shape(), (Shape{2, 5, 3}));
  EXPECT_EQ(gated.weight().value.shape(), (Shape{4, 3, 3}));
  EXPECT_EQ(gated.bias()->value.shape(), (Shape{4}));
  EXPECT_EQ(gated.bias()->decay, Decay::kNo);
  EXPECT_THAT(to_vector(gated.bias()->value.vec<float>()), testing::Each(0));
}

// ---- what is refused

TEST(ConvolutionLayer, RefusesWhatDoesNotFit) {
  ParameterSet set({});
  const ParameterScope scope(set);
  EXPECT_THROWS((ConvolutionLayer({.in = 3, .out = 2, .width = 0}, scope)), kShape,
                "in is 3, out is 2, width is 0, dilation is 1");
  EXPECT_THROWS((ConvolutionLayer(
                    {.in = 3, .out = 2, .activation = Activation::kRelu, .gated = true}, scope)),
                kShape, "gates or an activation, not both");
  EXPECT_THROWS((TextCnn({.in = 3, .out = 2, .widths = {}}, scope)), kShape, "a window at least");
}

TEST(ConvolutionLayer, RefusesAStateThatItCannotContinue) {
  ParameterSet set({});
  const ConvolutionLayer same({.in = 2, .out = 2}, ParameterScope(set)["same"]);
  const ConvolutionLayer causal({.in = 2, .out = 2, .padding = Padding::kCausal},
                                ParameterScope(set)["causal"]);
  const ConvolutionLayer wide({.in = 2, .out = 2, .width = 5, .padding = Padding::kCausal},
                              ParameterScope(set)["wide"]);
  const auto x = noise(6);
  ConvolutionState state;
  const auto forward = [&](const ConvolutionLayer& layer, TapeMode mode) {
    Tape tape(Context(1), mode);
    layer.forward(tape, tape.constant(as_rows(x, 2)), state);
  };
  EXPECT_THROWS(forward(same, TapeMode::kInference), kShape,
                "only a causal convolution continues a sequence");
  EXPECT_THROWS(forward(causal, TapeMode::kTrain), kShape, "one sequence in inference mode");
  forward(causal, TapeMode::kInference);
  EXPECT_THROWS(forward(wide, TapeMode::kInference), kShape,
                "the state must be float32 [4, 2]; it is float32 [2, 2]");
}

TEST(Convolution, NamesWhatDoesNotFit) {
  Tape tape{Context(1)};
  const auto numbers = noise(60);
  const auto matrix = [&](index rows, index columns) {
    return tape.constant(Rows<const float>(numbers.data(), rows, columns));
  };
  EXPECT_THROWS(convolution(tape, matrix(4, 5), matrix(2, 14), {}, {}, {}), kShape,
                "convolution: weight must be [out, 3 x 5], width x in; it is [2, 14]");
  EXPECT_THROWS(convolution(tape, matrix(4, 5), matrix(2, 15), matrix(1, 3), {}, {}), kShape,
                "convolution: bias must be [1, 2]; it is [1, 3]");
  const Offsets offsets = {0, 3};
  EXPECT_THROWS(convolution(tape, matrix(4, 5), matrix(2, 15), {}, sequences(offsets), {}), kShape,
                "convolution: offsets must run from 0 to the 4 rows; they run from 0 to 3");
  EXPECT_THROWS(convolution(tape, matrix(4, 5), matrix(2, 15), {}, {}, {.dilation = 0}), kShape,
                "width and dilation must be positive; they are 3 and 0");
  EXPECT_THROWS(glu(tape, matrix(4, 5)), kShape, "an even number of columns; it has 5");
}

}  // namespace
}  // namespace fovea
