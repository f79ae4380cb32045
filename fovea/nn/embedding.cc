// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/embedding.h"

namespace fovea {

namespace {

Parameter& add_tokens(const EmbeddingOptions& o, const ParameterScope& scope) {
  Parameter& tokens = scope.add("tokens", {o.vocabulary, o.width}, o.init);
  tokens.row_use = o.frozen ? RowUse::kDense : o.row_use;
  tokens.frozen = o.frozen;
  return tokens;
}

}  // namespace

Embedding::Embedding(const EmbeddingOptions& options, const ParameterScope& scope)
    : options_(options) {
  const auto& o = options_;
  tokens_ = o.shared != nullptr ? o.shared : &add_tokens(o, scope);
  if (!adds_position_rows(o.position)) {
    check(o.join == PositionJoin::kAdd, "embedding: there are no position rows to concatenate");
    return;
  }
  if (o.position == PositionKind::kLearned) {
    positions_ = &scope.add("positions", {o.positions, o.width}, o.init, Decay::kNo);
  } else if (!scope.shapes_only()) {
    sinusoids_ =
        sinusoidal_positions(o.positions, {.width = o.width, .order = o.sinusoid}, scope.dtype());
  }
  if (o.join == PositionJoin::kConcatenate) {
    join_.emplace(LinearOptions{.in = 2 * o.width, .out = o.width, .bias = Biases::kNone},
                  scope["join"]);
  }
}

Variable Embedding::positions(Tape& tape) const {
  if (positions_ != nullptr) return tape.parameter(*positions_);
  Variable table;
  with_type(sinusoids_.dtype(),
            [&]<class T>(std::type_identity<T>) { table = tape.constant(sinusoids_.rows<T>()); });
  return table;
}

Variable Embedding::table(Tape& tape) const {
  if (!tokens_->frozen) return tape.table(*tokens_);
  Variable table;
  with_type(tokens_->value.dtype(), [&]<class T>(std::type_identity<T>) {
    const Tensor& rows = tokens_->value;
    table = tape.constant(rows.rows<T>());
  });
  return table;
}

TableRows Embedding::tokens_at(Tape& tape, Vec<const std::int32_t> ids) const {
  return {table(tape), ids, options_.padding, options_.scale};
}

Variable Embedding::token_rows(Tape& tape, Vec<const std::int32_t> ids) const {
  return embedding(tape, tokens_at(tape, ids));
}

Variable Embedding::position_rows(Tape& tape, Vec<const std::int32_t> places) const {
  return embedding(tape, TableRows{positions(tape), places});
}

Variable Embedding::from_inputs(Tape& tape, const TableRows& tokens, const PackedRows& rows,
                                Variable& inputs) const {
  inputs = as_input(tape, embedding(tape, tokens));
  if (!adds_position_rows(options_.position)) return inputs;
  const TableRows places{positions(tape), rows.positions};
  const Variable joined = join_positions(tape, inputs, places, options_.join);
  return join_ ? join_->forward(tape, joined) : joined;
}

Variable Embedding::forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                            Variable* inputs) const {
  const TableRows tokens = tokens_at(tape, ids);
  if (inputs != nullptr) return from_inputs(tape, tokens, rows, *inputs);
  if (!adds_position_rows(options_.position)) return embedding(tape, tokens);
  const TableRows places{positions(tape), rows.positions};
  if (!join_) return embedding(tape, tokens, places);
  const Variable joined =
      join_positions(tape, embedding(tape, tokens), places, PositionJoin::kConcatenate);
  return join_->forward(tape, joined);
}

}  // namespace fovea
