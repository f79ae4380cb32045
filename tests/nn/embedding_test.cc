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
                                         PositionKind::kAlibi, PositionKind::kNone));

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

TEST(Embedding, NeverTrainsThePaddingRow) {
  ParameterSet set({});
  const Embedding layer({.vocabulary = 5, .width = 2, .positions = 2, .padding = 4},
                        ParameterScope(set));
  Tape tape{Context(1)};
  tape.backward(sum(tape, forward(tape, layer)));
  EXPECT_THAT(to_vector(layer.tokens().gradient.vec<float>()),
              testing::ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(Embedding, RefusesAPositionBeyondItsTable) {
  ParameterSet set({});
  const Embedding layer({.vocabulary = 5, .width = 2, .positions = 1}, ParameterScope(set));
  Tape tape{Context(1)};
  EXPECT_THROWS(forward(tape, layer), kShape, "1");
}

}  // namespace
}  // namespace fovea
