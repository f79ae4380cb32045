// SPDX-License-Identifier: Apache-2.0
// The embedding of rows of numbers, in place of that of tokens: a linear projection, the row of the
// joint, and positions over time.
#pragma once

#include <optional>

#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"
#include "fovea/nn/options.h"
#include "fovea/nn/position.h"

namespace fovea {

struct FrameEmbeddingOptions {
  index features = 0;   ///< numbers of a row
  index joints = 0;     ///< 0: rows have none
  index width = 0;      ///< of the result
  index positions = 0;  ///< rows of the position table: the length of the longest sequence
  PositionKind position = PositionKind::kNone;
  PositionJoin join = PositionJoin::kAdd;
  SinusoidOrder sinusoid = SinusoidOrder::kInterleaved;
  double scale = 1;  ///< of the projected rows, before joints and positions join them
  Init weight = Init::normal(kInitDeviation);
};

/// Parameters: weight [C, features], bias [C]; with joints, joints [joints, C]; positions as
/// Embedding has them: if learned, positions [positions, C]; if concatenated, join.weight [C, 2 C].
class FrameEmbedding {
 public:
  FrameEmbedding(const FrameEmbeddingOptions& options, const ParameterScope& scope);

  /// x [N, features] -> [N, C]. `joints` [N] is the joint of each row, or empty without joints;
  /// `rows` says where in time a row lies. Throws Error(kShape).
  Variable forward(Tape& tape, Variable x, Vec<const std::int32_t> joints,
                   const PackedRows& rows) const;

  DType dtype() const { return dtype_; }

 private:
  Variable positions(Tape& tape) const;

  FrameEmbeddingOptions options_;
  DType dtype_;
  Linear projection_;
  Parameter* joints_ = nullptr;
  Parameter* positions_ = nullptr;
  Tensor sinusoids_;
  std::optional<Linear> join_;
};

}  // namespace fovea
