// SPDX-License-Identifier: Apache-2.0
// Embeddings of tokens and of rows of numbers, with their positions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fovea/attention/bias/distance.h"  // alibi_slopes
#include "fovea/grad/ops.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"
#include "fovea/nn/options.h"

namespace fovea {

// Position embeddings: sines and cosines or a learned table, added to the token embeddings or
// concatenated with them.

struct SinusoidOptions {
  index width = 0;  ///< even
  SinusoidOrder order = SinusoidOrder::kInterleaved;
  index reference = 0;  ///< position p gets the row of |p - reference|
};

/// Where the sine and the cosine of frequency i stand.
struct SinusoidColumns {
  index sine, cosine;
};
SinusoidColumns sinusoid_columns(index i, const SinusoidOptions& options);

/// Rows for positions [0, count): sin and cos of p / 10000^(2i/d), i < d/2 (Vaswani et al. 2017,
/// section 3.5). float32 or float64, computed in double.
Tensor sinusoidal_positions(index count, const SinusoidOptions& options,
                            DType dtype = DType::kFloat32);

/// e + p (of the same width) or [e; p]: e [N, C]; p is a row of `table` [positions, P] for each id.
Variable join_positions(Tape& tape, Variable e, const TableRows& positions, PositionJoin join);

/// How positions join the rows of an embedding.
struct PositionOptions {
  index width = 0;  ///< of the rows
  index positions = 0;
  PositionKind kind = PositionKind::kNone;
  PositionJoin join = PositionJoin::kAdd;
  SinusoidOrder sinusoid = SinusoidOrder::kInterleaved;
  Init init = Init::normal(kInitDeviation);  ///< of a learned table
};

/// Parameters: if learned, positions [positions, C], without weight decay; if concatenated,
/// join.weight [C, 2 C], which projects [e; p] to the width of the rows.
class PositionTable {
 public:
  PositionTable(const PositionOptions& options, const ParameterScope& scope);

  /// Whether there are rows to join: positions are learned or sinusoidal.
  bool has_rows() const { return adds_position_rows(options_.kind); }
  bool is_added() const { return !projection_; }
  TableRows rows(Tape& tape, Vec<const std::int32_t> positions) const;
  /// e with the rows of these positions; e itself if there are none.
  Variable join(Tape& tape, Variable e, Vec<const std::int32_t> positions) const;

 private:
  PositionOptions options_;
  Parameter* learned_ = nullptr;
  Tensor sinusoids_;
  std::optional<Linear> projection_;
};

// Token embeddings, with position embeddings added (Vaswani et al. 2017, section 3.5) or
// concatenated if the model has them.

struct EmbeddingOptions {
  index vocabulary = 0;
  index width = 0;
  index positions = 0;  ///< rows of the position table: the length of the longest sequence
  PositionKind position = PositionKind::kLearned;
  PositionJoin join = PositionJoin::kAdd;
  SinusoidOrder sinusoid = SinusoidOrder::kInterleaved;
  double scale = 1;                          ///< of the token rows, before positions join them
  Init init = Init::normal(kInitDeviation);  ///< of both tables
  std::optional<std::int32_t> padding{};     ///< a token whose row is never trained: padding_idx
  /// For the table of tokens: kSparse if no other layer reads it and a step reads few of its rows.
  RowUse row_use = RowUse::kDense;
  bool frozen = false;  ///< the table of the tokens is never trained
  /// The table of the tokens, if another embedding has it already; null: one of its own.
  Parameter* shared = nullptr;
};

/// Parameters: tokens [V, C], unless it is shared; those of PositionTable.
class Embedding {
 public:
  Embedding(const EmbeddingOptions& options, const ParameterScope& scope);

  /// One row for each id. Ids and positions out of range are errors. `inputs`, if given, becomes
  /// the rows of the tokens times their scale, before positions join them, as an input of the tape:
  /// the gradient ends there.
  Variable forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                   Variable* inputs = nullptr) const;

  /// The rows of the tokens times their scale, without positions.
  Variable token_rows(Tape& tape, Vec<const std::int32_t> ids) const;
  /// The rows of the positions alone, of an embedding that has them.
  Variable position_rows(Tape& tape, Vec<const std::int32_t> positions) const;

  Parameter& tokens() const { return *tokens_; }
  bool has_positions() const { return positions_.has_rows(); }

 private:
  Variable table(Tape& tape) const;
  TableRows tokens_at(Tape& tape, Vec<const std::int32_t> ids) const;

  EmbeddingOptions options_;
  Parameter* tokens_;
  PositionTable positions_;
};

// The embedding of rows of numbers, in place of that of tokens: a linear projection, the row of the
// joint, and positions over time.

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

/// Parameters: weight [C, features], bias [C]; with joints, joints [joints, C]; those of
/// PositionTable.
class FrameEmbedding {
 public:
  FrameEmbedding(const FrameEmbeddingOptions& options, const ParameterScope& scope);

  /// x [N, features] -> [N, C]. `joints` [N] is the joint of each row, or empty without joints;
  /// `rows` says where in time a row lies. Throws Error(kShape).
  Variable forward(Tape& tape, Variable x, Vec<const std::int32_t> joints,
                   const PackedRows& rows) const;

  DType dtype() const { return dtype_; }

 private:
  FrameEmbeddingOptions options_;
  DType dtype_;
  Linear projection_;
  Parameter* joints_;
  PositionTable positions_;
};

}  // namespace fovea
