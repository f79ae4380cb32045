// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/embedding.h"

namespace fovea {

Embedding::Embedding(const EmbeddingOptions& options, const ParameterScope& scope)
    : options_(options) {
  const Init init = Init::normal(kInitDeviation);
  tokens_ = &scope.add("tokens", {options.vocabulary, options.width}, init);
  if (options.position == PositionKind::kLearned) {
    positions_ = &scope.add("positions", {options.positions, options.width}, init, Decay::kNo);
  } else if (options.position == PositionKind::kSinusoidal && !scope.shapes_only()) {
    sinusoids_ = sinusoidal_positions(options.positions, {.width = options.width}, scope.dtype());
  }
}

Variable Embedding::forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows) const {
  const TableRows tokens{tape.parameter(*tokens_), ids, options_.padding};
  if (positions_ != nullptr) {
    return embedding(tape, tokens, {tape.parameter(*positions_), rows.positions});
  }
  if (!sinusoids_.defined()) return embedding(tape, tokens);
  Variable table;
  with_type(sinusoids_.dtype(),
            [&]<class T>(std::type_identity<T>) { table = tape.constant(sinusoids_.rows<T>()); });
  return embedding(tape, tokens, {table, rows.positions});
}

}  // namespace fovea
