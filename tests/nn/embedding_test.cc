// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::int32_t kIds[] = {4, 0, 4}, kOffsets[] = {0, 2, 3};

Variable forward(Tape& tape, const Embedding& layer) {
  return layer.forward(tape, {kIds, 3}, lay_out_rows(tape, 3, {kOffsets, 3}, {}));
}

class EveryPosition : public testing::TestWithParam<PositionKind> {};

TEST_P(EveryPosition, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const Embedding layer({.vocabulary = 5, .width = 4, .positions = 3, .position = GetParam()},
                        ParameterScope(set));
  expect_gradients(set, [&](Tape& tape) { return forward(tape, layer); });
}

INSTANTIATE_TEST_SUITE_P(Positions, EveryPosition,
                         testing::Values(PositionKind::kLearned, PositionKind::kSinusoidal,
                                         enum_from_name<PositionKind>("alibi"),
                                         PositionKind::kNone));

TEST(Embedding, AddsThePositionWithinEachSequence) {
  ParameterSet set({});
  const Embedding layer({.vocabulary = 5, .width = 2, .positions = 2}, ParameterScope(set));
  const auto y = output_of([&](Tape& tape) { return forward(tape, layer); });
  const auto tokens = set.find("tokens")->value.vec<float>();
  const auto positions = set.find("positions")->value.vec<float>();
  EXPECT_EQ(y[0], tokens[8] + positions[0]);
  EXPECT_EQ(y[2], tokens[0] + positions[2]);
  EXPECT_EQ(y[4], tokens[8] + positions[0]);
}

TEST(Embedding, ScalesTokensButNotPositions) {
  auto set = float64_set();
  const EmbeddingOptions options{.vocabulary = 5, .width = 2, .positions = 2, .scale = 3};
  const Embedding layer(options, ParameterScope(set));
  expect_gradients(set, [&](Tape& tape) { return forward(tape, layer); });
  const auto y = output_of<double>([&](Tape& tape) { return forward(tape, layer); });
  const auto tokens = set.find("tokens")->value.vec<double>();
  const auto positions = set.find("positions")->value.vec<double>();
  EXPECT_DOUBLE_EQ(y[0], 3 * tokens[8] + positions[0]);
}

TEST(Embedding, ConcatenatesThePositionAndProjects) {
  ParameterSet set({});
  const EmbeddingOptions options{
      .vocabulary = 5, .width = 2, .positions = 2, .join = PositionJoin::kConcatenate};
  const Embedding layer(options, ParameterScope(set));
  const auto y = output_of([&](Tape& tape) { return forward(tape, layer); });
  const auto e = set.find("tokens")->value.vec<float>();
  const auto p = set.find("positions")->value.vec<float>();
  const auto w = set.find("join.weight")->value.rows<float>();
  ASSERT_EQ(w.rows, 2);
  ASSERT_EQ(w.columns, 4);
  // Row 1 is token 0 at position 1.
  EXPECT_NEAR(y[2], w[0][0] * e[0] + w[0][1] * e[1] + w[0][2] * p[2] + w[0][3] * p[3], 1e-8);
}

TEST(Embedding, OfAConcatenationHasTheGradientOfTheForward) {
  for (const PositionKind kind : {PositionKind::kLearned, PositionKind::kSinusoidal}) {
    auto set = float64_set();
    const EmbeddingOptions options{.vocabulary = 5,
                                   .width = 4,
                                   .positions = 3,
                                   .position = kind,
                                   .join = PositionJoin::kConcatenate};
    const Embedding layer(options, ParameterScope(set));
    expect_gradients(set, [&](Tape& tape) { return forward(tape, layer); });
  }
}

TEST(Embedding, HasSinusoidsInTheOrderAskedFor) {
  const auto row = [](SinusoidOrder order) {
    ParameterSet set({});
    const EmbeddingOptions options{.vocabulary = 5,
                                   .width = 4,
                                   .positions = 2,
                                   .position = PositionKind::kSinusoidal,
                                   .sinusoid = order};
    const Embedding layer(options, ParameterScope(set));
    const auto y = output_of([&](Tape& tape) { return forward(tape, layer); });
    const auto e = set.find("tokens")->value.vec<float>();
    return std::vector<float>{y[4] - e[0], y[5] - e[1], y[6] - e[2], y[7] - e[3]};
  };
  const float s0 = std::sin(1.0F), c0 = std::cos(1.0F), s1 = std::sin(0.01F), c1 = std::cos(0.01F);
  using testing::FloatNear;
  const auto near = [](float x) { return FloatNear(x, 1e-6F); };
  EXPECT_THAT(row(SinusoidOrder::kInterleaved),
              testing::ElementsAre(near(s0), near(c0), near(s1), near(c1)));
  EXPECT_THAT(row(SinusoidOrder::kSinCos),
              testing::ElementsAre(near(s0), near(s1), near(c0), near(c1)));
  EXPECT_THAT(row(SinusoidOrder::kCosSin),
              testing::ElementsAre(near(c0), near(c1), near(s0), near(s1)));
}

// The rows are the same as without inputs, and two places of one token have their own gradients.
TEST(Embedding, GivesItsTokenRowsAsInputs) {
  for (const PositionJoin join : {PositionJoin::kAdd, PositionJoin::kConcatenate}) {
    ParameterSet set({});
    const EmbeddingOptions options{
        .vocabulary = 5, .width = 2, .positions = 2, .join = join, .scale = 3};
    const Embedding layer(options, ParameterScope(set));
    Tape tape(Context(1), TapeMode::kInputs);
    Variable inputs;
    const Variable y =
        layer.forward(tape, {kIds, 3}, lay_out_rows(tape, 3, {kOffsets, 3}, {}), &inputs);
    EXPECT_EQ(to_vector(y.value<float>()),
              output_of([&](Tape& other) { return forward(other, layer); }));
    const auto tokens = set.find("tokens")->value.vec<float>();
    EXPECT_EQ(inputs.value<float>()[0][1], 3 * tokens[9]);
    const float kFactors[] = {1, 1, 0, 0, 2, 2};
    const Variable factors = tape.constant(Rows<const float>(kFactors, 3, 2));
    tape.backward(sum(tape, multiply(tape, y, factors)));
    const Rows<const float> dx = inputs.gradient<float>();
    EXPECT_EQ(dx[1][0], 0);
    EXPECT_NE(dx[0][0], 0);
    EXPECT_EQ(dx[2][0], 2 * dx[0][0]);
    EXPECT_FALSE(set.find("tokens")->gradient.defined());
  }
}

TEST(Embedding, NeverTrainsThePaddingRow) {
  ParameterSet set({});
  const Embedding layer({.vocabulary = 5, .width = 2, .positions = 2, .padding = 4},
                        ParameterScope(set));
  Tape tape{Context(1)};
  tape.backward(sum(tape, forward(tape, layer)));
  EXPECT_THAT(to_vector(layer.tokens().gradient.vec<float>()),
              testing::ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(Embedding, OfRowsHasTheGradientOfTheForward) {
  auto set = float64_set();
  const Embedding layer(
      {.vocabulary = 5, .width = 4, .positions = 3, .padding = 0, .row_use = RowUse::kSparse},
      ParameterScope(set));
  EXPECT_EQ(set.find("tokens")->row_use, RowUse::kSparse);
  EXPECT_EQ(set.find("positions")->row_use, RowUse::kDense);
  Tape tape{Context(1)};
  tape.backward(sum(tape, forward(tape, layer)));
  EXPECT_EQ(layer.tokens().row_gradient.size(), 2);
  EXPECT_FALSE(layer.tokens().gradient.defined());
  set.find("tokens")->clear_gradient();
  EXPECT_THAT(to_vector(layer.tokens().finished_gradient().vec<double>()), testing::Each(0));
}

TEST(Embedding, RefusesAPositionBeyondItsTable) {
  ParameterSet set({});
  const Embedding layer({.vocabulary = 5, .width = 2, .positions = 1}, ParameterScope(set));
  Tape tape{Context(1)};
  EXPECT_THROWS(forward(tape, layer), kShape, "1");
}

}  // namespace
}  // namespace fovea
