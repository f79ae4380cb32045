// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/frame_embedding.h"

namespace fovea {

namespace {

// As large as what is projected from normalised numbers, so that the first layer tells joints
// apart.
constexpr double kJointDeviation = 0.5;

LinearOptions projection_options(const FrameEmbeddingOptions& o) {
  return {.in = o.features, .out = o.width, .bias = Biases::kLearned, .weight = o.weight};
}

}  // namespace

FrameEmbedding::FrameEmbedding(const FrameEmbeddingOptions& options, const ParameterScope& scope)
    : options_(options), dtype_(scope.dtype()), projection_(projection_options(options), scope) {
  const auto& o = options_;
  if (o.joints > 0) {
    joints_ = &scope.add("joints", {o.joints, o.width}, Init::normal(kJointDeviation), Decay::kNo);
  }
  if (!adds_position_rows(o.position)) {
    check(o.join == PositionJoin::kAdd, "frames: there are no position rows to concatenate");
    return;
  }
  if (o.position == PositionKind::kLearned) {
    positions_ =
        &scope.add("positions", {o.positions, o.width}, Init::normal(kInitDeviation), Decay::kNo);
  } else if (!scope.shapes_only()) {
    sinusoids_ =
        sinusoidal_positions(o.positions, {.width = o.width, .order = o.sinusoid}, scope.dtype());
  }
  if (o.join == PositionJoin::kConcatenate) {
    join_.emplace(LinearOptions{.in = 2 * o.width, .out = o.width, .bias = Biases::kNone},
                  scope["join"]);
  }
}

Variable FrameEmbedding::positions(Tape& tape) const {
  if (positions_ != nullptr) return tape.parameter(*positions_);
  Variable table;
  with_type(dtype_,
            [&]<class T>(std::type_identity<T>) { table = tape.constant(sinusoids_.rows<T>()); });
  return table;
}

Variable FrameEmbedding::forward(Tape& tape, Variable x, Vec<const std::int32_t> joints,
                                 const PackedRows& rows) const {
  check(x.columns() == options_.features, "frames: x must have {} columns; it has {}",
        options_.features, x.columns());
  check(joints.size == (joints_ == nullptr ? 0 : x.rows()), "frames: {} joints for {} rows",
        joints.size, x.rows());
  Variable y = projection_.forward(tape, x);
  if (options_.scale != 1) y = scale(tape, y, options_.scale);
  if (joints_ != nullptr) {
    y = add(tape, y, embedding(tape, {.table = tape.parameter(*joints_), .ids = joints}));
  }
  if (!adds_position_rows(options_.position)) return y;
  y = join_positions(tape, y, {.table = positions(tape), .ids = rows.positions}, options_.join);
  return join_ ? join_->forward(tape, y) : y;
}

}  // namespace fovea
