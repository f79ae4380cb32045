// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/nn/embedding.h"
#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::int32_t kJoints[] = {0, 0, 1, 1}, kOffsets[] = {0, 2, 4};

FrameEmbeddingOptions options_with(PositionKind position, index joints) {
  return {.features = 3, .joints = joints, .width = 4, .positions = 2, .position = position};
}

Variable forward(Tape& tape, const FrameEmbedding& layer, index joints) {
  const auto values = noise<double>(12);
  const Variable x = tape.result(4, 3, DType::kFloat64);
  std::copy(values.begin(), values.end(), x.value<double>().data);
  return layer.forward(tape, x, {kJoints, joints > 0 ? 4 : 0},
                       lay_out_rows(tape, 4, {kOffsets, 3}, {}));
}

TEST(FrameEmbedding, GradientsAreThoseOfTheForward) {
  for (const PositionKind position :
       {PositionKind::kNone, PositionKind::kLearned, PositionKind::kSinusoidal}) {
    for (const index joints : {0, 2}) {
      auto set = float64_set();
      FrameEmbeddingOptions o = options_with(position, joints);
      o.scale = 3;
      if (adds_position_rows(position) && joints > 0) o.join = PositionJoin::kConcatenate;
      const FrameEmbedding layer(o, ParameterScope(set));
      expect_gradients(set, [&](Tape& tape) { return forward(tape, layer, joints); });
    }
  }
}

TEST(FrameEmbedding, AddsTheProjectionTheJointAndThePosition) {
  auto set = float64_set();
  const FrameEmbedding layer(options_with(PositionKind::kLearned, 2), ParameterScope(set));
  randomise(set);
  const auto y = output_of<double>([&](Tape& tape) { return forward(tape, layer, 2); });
  const auto x = noise<double>(12);
  const auto at = [&](const char* name, index n) { return set.find(name)->value.vec<double>()[n]; };
  for (index c = 0; c < 4; ++c) {
    double sum = at("bias", c) + at("joints", 4 + c) + at("positions", 4 + c);  // row 3: joint 1
    for (index f = 0; f < 3; ++f)
      sum += at("weight", 3 * c + f) * x[9 + static_cast<std::size_t>(f)];
    EXPECT_NEAR(y[12 + static_cast<std::size_t>(c)], sum, 1e-12);
  }
}

TEST(FrameEmbedding, RefusesWhatDoesNotFit) {
  auto set = float64_set();
  const FrameEmbedding layer(options_with(PositionKind::kNone, 2), ParameterScope(set));
  Tape tape{Context(1)};
  EXPECT_THROWS(forward(tape, layer, 0), kShape, "0 joints for 4 rows");
  const Variable narrow = tape.result(4, 2, DType::kFloat64);
  EXPECT_THROWS(layer.forward(tape, narrow, {kJoints, 4}, {}), kShape, "x must have 3 columns");
}

}  // namespace
}  // namespace fovea
