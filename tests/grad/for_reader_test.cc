// SPDX-License-Identifier: Apache-2.0
// Results that are made for one reader (ForReader::kProduct), against the same that any op may
// read: the bits of values and of gradients are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "fovea/attention/mask/band.h"
#include "fovea/grad/ops.h"
#include "tests/isa.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

std::vector<float> noise(index n, std::uint64_t number) {
  Random random(3, RandomUse::kTest, number);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

Parameter make_parameter(index rows, index columns, std::uint64_t number) {
  Parameter p;
  p.name = "p" + std::to_string(number);
  p.value = Tensor::of<float>({rows, columns}, noise(rows * columns, number));
  return p;
}

// The loss, and the gradients of x and of the parameters.
using Outcome = std::vector<std::vector<float>>;
using Model = std::function<Variable(Tape&, Variable x, std::vector<Parameter>&, ForReader)>;

constexpr index kRows = 150, kWidth = 48, kHidden = 96;

Outcome outcome_of(const Context& context, const Model& model, ForReader reader,
                   TapeMode mode = TapeMode::kTrain) {
  std::vector<Parameter> parameters;
  parameters.push_back(make_parameter(kHidden, kWidth, 1));
  parameters.push_back(make_parameter(kWidth, kHidden, 2));
  parameters.push_back(make_parameter(3 * kWidth, kWidth, 3));
  parameters.push_back(make_parameter(kWidth, kWidth, 4));
  parameters.push_back(make_parameter(1, kHidden, 5));
  const std::vector<float> values = noise(kRows * kWidth, 6);
  Tape tape(context, mode);
  const Variable x = tape.input(Rows<const float>(values.data(), kRows, kWidth));
  const Variable y = model(tape, x, parameters, reader);
  const Variable loss = sum(tape, multiply(tape, y, y));
  tape.backward(loss);
  Outcome outcome = {to_vector(loss.value<float>()), to_vector(x.gradient<float>())};
  for (const Parameter& p : parameters) {
    if (p.has_gradient) outcome.push_back(to_vector(p.gradient.rows<float>()));
  }
  return outcome;
}

void expect_same_bits(const Model& model) {
  for_each_isa([&] {
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      for (const int threads : {1, 3}) {
        const Context context = Context(threads).with(precision);
        for (const TapeMode mode : {TapeMode::kTrain, TapeMode::kInputs}) {
          EXPECT_EQ(outcome_of(context, model, ForReader::kProduct, mode),
                    outcome_of(context, model, ForReader::kAny, mode));
        }
      }
    }
  });
}

TEST(ForReader, AFeedForwardNetworkHasTheSameBits) {
  for (const Activation f : {Activation::kNone, Activation::kRelu, Activation::kGelu,
                             Activation::kGeluTanh, Activation::kSilu, Activation::kTanh}) {
    expect_same_bits([f](Tape& tape, Variable x, std::vector<Parameter>& p, ForReader reader) {
      const Variable hidden = linear(tape, x, tape.parameter(p[0]), {}, f, reader);
      return linear(tape, hidden, tape.parameter(p[1]));
    });
  }
}

// Self-attention of two sequences.
Variable attention_of(Tape& tape, Variable x, std::vector<Parameter>& p, ForReader reader,
                      AttentionOptions options) {
  static const Mask causal = mask::Causal();
  options.heads = 3;
  options.mask = &causal;
  options.reader = reader;
  const std::array widths{kWidth, kWidth, kWidth};
  const Variable all = linear(tape, x, tape.parameter(p[2]), {}, Activation::kNone, reader);
  const auto qkv = split_columns(tape, all, widths);
  static const std::vector<std::int32_t> offsets = {0, 61, kRows};
  PackedRows rows;
  rows.offsets = offsets;
  const Variable o = attention(tape, {qkv[0], qkv[1], qkv[2], rows, rows}, options);
  return linear(tape, o, tape.parameter(p[3]));
}

TEST(ForReader, AttentionHasTheSameBits) {
  AttentionOptions rotary, sigmoid, dropout;
  rotary.variant.rotary = RotaryPairs::kHalves;
  sigmoid.variant.norm = AttentionNormKind::kSigmoid;
  dropout.dropout.p = 0.25;
  for (const AttentionOptions& options : {AttentionOptions{}, rotary, sigmoid, dropout}) {
    ASSERT_TRUE(reads_rounded(options.variant));
    expect_same_bits([&](Tape& tape, Variable x, std::vector<Parameter>& p, ForReader reader) {
      return attention_of(tape, x, p, reader, options);
    });
  }
}

TEST(ForReader, OtherScoresAndNoNormReadWholeRows) {
  AttentionVariant cosine, none;
  cosine.score = AttentionScoreKind::kCosine;
  none.norm = AttentionNormKind::kNone;
  EXPECT_FALSE(reads_rounded(cosine));
  EXPECT_FALSE(reads_rounded(none));
}

// The gradient of a result for one reader cannot be summed, and only a product multiplies it by the
// slope of the activation.
TEST(ForReader, AnotherReaderIsRefused) {
  using Read = std::function<Variable(Tape&, Variable hidden, std::vector<Parameter>&)>;
  const auto product = [](Tape& tape, Variable hidden, std::vector<Parameter>& p) {
    return linear(tape, hidden, tape.parameter(p[1]));
  };
  const Read twice = [&](Tape& tape, Variable hidden, std::vector<Parameter>& p) {
    return add(tape, product(tape, hidden, p), product(tape, hidden, p));
  };
  const Read no_product = [](Tape& tape, Variable hidden, std::vector<Parameter>&) {
    return scale(tape, hidden, 2);
  };
  const Read split = [&](Tape& tape, Variable hidden, std::vector<Parameter>&) {
    return split_columns(tape, hidden, std::array{kWidth, kHidden - kWidth})[0];
  };
  for (const Read& read : {twice, no_product, split}) {
    const Model model = [&](Tape& tape, Variable x, std::vector<Parameter>& p, ForReader reader) {
      return read(tape, linear(tape, x, tape.parameter(p[0]), {}, Activation::kGelu, reader), p);
    };
    EXPECT_FALSE(outcome_of(Context(1), model, ForReader::kAny).empty());
    EXPECT_TRUE(error_of([&] { outcome_of(Context(1), model, ForReader::kProduct); }));
    const Context rounded = Context(1).with(Precision::kBFloat16);
    EXPECT_TRUE(error_of([&] { outcome_of(rounded, model, ForReader::kProduct); }));
  }
}

// The terms of the gradient of a bias are rounded; all else has the same bits.
TEST(ForReader, TheGradientOfABiasIsASumOfRoundedTerms) {
  const Model model = [](Tape& tape, Variable x, std::vector<Parameter>& p, ForReader reader) {
    const Variable bias = tape.parameter(p[4]);
    const Variable hidden = linear(tape, x, tape.parameter(p[0]), bias, Activation::kGelu, reader);
    return linear(tape, hidden, tape.parameter(p[1]));
  };
  const Context context = Context(2).with(Precision::kBFloat16);
  Outcome one = outcome_of(context, model, ForReader::kProduct),
          any = outcome_of(context, model, ForReader::kAny);
  ASSERT_EQ(one.size(), 5u);
  const std::vector<float> of_one = one.back(), of_any = any.back();
  one.pop_back();
  any.pop_back();
  EXPECT_EQ(one, any);
  double most = 0;
  for (const float x : of_any) most = std::max(most, std::abs(double{x}));
  for (std::size_t i = 0; i < of_any.size(); ++i) EXPECT_NEAR(of_one[i], of_any[i], 4e-3 * most);
}

}  // namespace
}  // namespace fovea
