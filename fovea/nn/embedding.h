// SPDX-License-Identifier: Apache-2.0
// Token embeddings, with position embeddings added (Vaswani et al. 2017, section 3.5) or
// concatenated if the model has them.
#pragma once

#include <optional>

#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"
#include "fovea/nn/options.h"
#include "fovea/nn/position.h"

namespace fovea {

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

/// Parameters: tokens [V, C], unless it is shared; if learned, positions [positions, C], without
/// weight decay; if concatenated, join.weight [C, 2 C], which projects [e; p] to the width of the
/// model.
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
  bool has_positions() const { return adds_position_rows(options_.position); }

 private:
  Variable positions(Tape& tape) const;
  Variable table(Tape& tape) const;
  TableRows tokens_at(Tape& tape, Vec<const std::int32_t> ids) const;
  Variable from_inputs(Tape& tape, const TableRows& tokens, const PackedRows& rows,
                       Variable& inputs) const;

  EmbeddingOptions options_;
  Parameter* tokens_;
  Parameter* positions_ = nullptr;
  Tensor sinusoids_;
  std::optional<Linear> join_;
};

}  // namespace fovea
