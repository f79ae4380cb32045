// SPDX-License-Identifier: Apache-2.0
// The bits of a sequence do not depend on its batch, also in training by every form of the product.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/reference/convolution.h"
#include "tests/isa.h"
#include "tests/nn/convolution_support.h"

namespace fovea {
namespace {

TEST(ConvolutionLayer, ASequenceAloneHasTheSameBits) {
  ParameterSet set({});
  const ConvolutionLayer layer({.in = 33, .out = 70, .activation = Activation::kGelu},
                               ParameterScope(set));
  randomise(set);
  const Offsets offsets = {0, 1, 1, 3, 90, 120, 121};
  const auto x = noise(121 * 33);
  for_each_isa([&] {
    const auto all = apply(layer, x, 33, offsets);
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const index begin = offsets[s], end = offsets[s + 1];
      const auto alone =
          apply(layer, rows_of(x, 33, begin, end), 33, {0, static_cast<std::int32_t>(end - begin)});
      EXPECT_EQ(alone, rows_of(all, 70, begin, end)) << "sequence " << s;
    }
  });
}

TEST(ConvolutionLayer, GoesOnWithTheSameBits) {
  for (const index dilation : {1, 3}) {
    ParameterSet set({});
    const ConvolutionLayer layer(
        {.in = 18, .out = 40, .width = 3, .padding = Padding::kCausal, .dilation = dilation},
        ParameterScope(set));
    randomise(set);
    const auto x = noise(150 * 18);
    for_each_isa([&] {
      const auto all = apply(layer, x, 18, {0, 150});
      ConvolutionState state;
      for (int time = 0; time < 2; ++time) {
        index begin = 0;
        for (const index rows : {1, 1, 0, 2, 9, 1, 110, 1, 25}) {
          const auto part = rows_of(x, 18, begin, begin + rows);
          const auto y = output_of(
              [&](Tape& t) { return layer.forward(t, t.constant(as_rows(part, 18)), state); });
          EXPECT_EQ(y, rows_of(all, 40, begin, begin + rows)) << begin;
          begin += rows;
        }
        state.clear();
      }
    });
  }
}

struct TrainedLayer {
  index in, out, dilation = 1;
};
// Few columns, rows that are far apart, and enough columns for Winograd's form.
constexpr TrainedLayer kTrained[] = {{40, 72}, {40, 72, 2}, {72, 100}};

// y, dx, and the gradients of both parameters, in training.
std::vector<std::vector<float>> train(const TrainedLayer& l, int threads,
                                      const std::vector<float>& input, const Offsets& offsets) {
  ParameterSet set({});
  const ConvolutionLayer layer(
      {.in = l.in, .out = l.out, .dilation = l.dilation, .activation = Activation::kTanh},
      ParameterScope(set));
  Tape tape{Context(threads)};
  const Variable x = tape.input(as_rows(input, l.in));
  const Variable y = layer.forward(tape, x, sequences(offsets));
  tape.backward(sum(tape, multiply(tape, y, y)));
  return {to_vector(y.value<float>()), to_vector(x.gradient<float>()),
          to_vector(layer.weight().finished_gradient().vec<float>()),
          to_vector(layer.bias()->finished_gradient().vec<float>())};
}

TEST(ConvolutionLayer, SameBitsForAnyNumberOfThreads) {
  const Offsets offsets = {0, 30, 31, 31, 200, 300};
  for_each_isa([&] {
    for (const TrainedLayer& layer : kTrained) {
      const auto x = noise(300 * layer.in);
      const auto one = train(layer, 1, x, offsets);
      for (const int threads : {2, 3, 8}) EXPECT_EQ(train(layer, threads, x, offsets), one);
    }
  });
}

TEST(ConvolutionLayer, ASequenceAloneTrainsWithTheSameBits) {
  const Offsets offsets = {0, 30, 31, 31, 200, 300};
  for_each_isa([&] {
    for (const TrainedLayer& layer : kTrained) {
      const auto x = noise(300 * layer.in);
      const auto all = train(layer, 2, x, offsets);
      for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
        const index begin = offsets[s], end = offsets[s + 1];
        const auto alone = train(layer, 2, rows_of(x, layer.in, begin, end),
                                 {0, static_cast<std::int32_t>(end - begin)});
        EXPECT_EQ(alone[0], rows_of(all[0], layer.out, begin, end)) << "y of sequence " << s;
        EXPECT_EQ(alone[1], rows_of(all[1], layer.in, begin, end)) << "dx of sequence " << s;
      }
    }
  });
}

// In double, so that only a wrong formula differs: Winograd's form has no cases small enough for
// the gradient checker.
TEST(ConvolutionLayer, TrainsWithTheGradientsOfPlainLoops) {
  const Offsets offsets = {0, 5, 5, 6, 40, 121};
  for (const Padding padding : {Padding::kSame, Padding::kCausal}) {
    auto set = float64_set();
    const ConvolutionLayer layer({.in = 70, .out = 65, .padding = padding}, ParameterScope(set));
    randomise(set);
    const auto input = noise<double>(121 * 70), weights = noise<double>(121 * 65, 1);
    Tape tape{Context(2)};
    const Variable x = tape.input(as_rows(input, 70));
    const Variable y = layer.forward(tape, x, sequences(offsets));
    tape.backward(sum(tape, multiply(tape, y, tape.constant(as_rows(weights, 65)))));
    Tensor plain_y({121, 65}, DType::kFloat64), dx({121, 70}, DType::kFloat64),
        dw({65, 210}, DType::kFloat64);
    const reference::Convolution<double> plain{
        as_rows(input, 70),
        layer.weight().value.reshape({65, 210}).rows<double>(),
        layer.bias()->value.vec<double>(),
        offsets,
        {3, padding, 1}};
    reference::convolution_forward(plain, plain_y.rows<double>());
    reference::convolution_backward<double>(plain, as_rows(weights, 65),
                                            {dx.rows<double>(), dw.rows<double>()});
    const auto expect_near = [](Vec<const double> got, Vec<const double> exact) {
      ASSERT_EQ(got.size, exact.size);
      for (index i = 0; i < got.size; ++i) ASSERT_NEAR(got[i], exact[i], 1e-11) << i;
    };
    expect_near({y.value<double>().data, 121 * 65}, plain_y.vec<double>());
    expect_near({x.gradient<double>().data, 121 * 70}, dx.vec<double>());
    expect_near(layer.weight().finished_gradient().vec<double>(), dw.vec<double>());
  }
}

}  // namespace
}  // namespace fovea
