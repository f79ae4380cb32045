// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/embedding.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "fovea/nn/embedding_bag.h"

namespace fovea {

namespace {

Variable constant_rows(Tape& tape, const Tensor& table) {
  Variable rows;
  with_type(table.dtype(),
            [&]<class T>(std::type_identity<T>) { rows = tape.constant(table.rows<T>()); });
  return rows;
}

}  // namespace

SinusoidColumns sinusoid_columns(index i, const SinusoidOptions& options) {
  const index half = options.width / 2;
  switch (options.order) {
    case SinusoidOrder::kInterleaved:
      return {2 * i, 2 * i + 1};
    case SinusoidOrder::kSinCos:
      return {i, half + i};
    case SinusoidOrder::kCosSin:
      return {half + i, i};
  }
  return {};
}

Tensor sinusoidal_positions(index count, const SinusoidOptions& options, DType dtype) {
  const index d = options.width;
  check(count >= 0 && d > 0 && d % 2 == 0,
        "sinusoidal positions: the width must be even and positive; it is {}", d);
  Tensor table({count, d}, DType::kFloat64);
  for (index p = 0; p < count; ++p) {
    double* row = table.rows<double>()[p];
    const auto distance = static_cast<double>(std::abs(p - options.reference));
    for (index i = 0; i < d / 2; ++i) {
      const double angle =
          distance / std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(d));
      const auto [sine, cosine] = sinusoid_columns(i, options);
      row[sine] = std::sin(angle);
      row[cosine] = std::cos(angle);
    }
  }
  return dtype == DType::kFloat64 ? table : table.to(dtype);
}

Variable join_positions(Tape& tape, Variable e, const TableRows& positions, PositionJoin join) {
  const Variable p = embedding(tape, positions);
  return join == PositionJoin::kAdd ? add(tape, e, p) : concat_columns(tape, std::array{e, p});
}

PositionTable::PositionTable(const PositionOptions& options, const ParameterScope& scope)
    : options_(options) {
  const auto& o = options_;
  if (!has_rows()) {
    check(o.join == PositionJoin::kAdd, "embedding: there are no position rows to concatenate");
    return;
  }
  if (o.kind == PositionKind::kLearned) {
    learned_ = &scope.add("positions", {o.positions, o.width}, o.init, Decay::kNo);
  } else if (!scope.shapes_only()) {
    sinusoids_ =
        sinusoidal_positions(o.positions, {.width = o.width, .order = o.sinusoid}, scope.dtype());
  }
  if (o.join == PositionJoin::kConcatenate) {
    projection_.emplace(LinearOptions{.in = 2 * o.width, .out = o.width, .bias = Biases::kNone},
                        scope["join"]);
  }
}

TableRows PositionTable::rows(Tape& tape, Vec<const std::int32_t> positions) const {
  return {learned_ != nullptr ? tape.parameter(*learned_) : constant_rows(tape, sinusoids_),
          positions};
}

Variable PositionTable::join(Tape& tape, Variable e, Vec<const std::int32_t> positions) const {
  if (!has_rows()) return e;
  const Variable joined = join_positions(tape, e, rows(tape, positions), options_.join);
  return projection_ ? projection_->forward(tape, joined) : joined;
}

namespace {

Parameter& add_tokens(const EmbeddingOptions& o, const ParameterScope& scope) {
  Parameter& tokens = scope.add("tokens", {o.vocabulary, o.width}, o.init);
  tokens.row_use = o.frozen ? RowUse::kDense : o.row_use;
  tokens.frozen = o.frozen;
  return tokens;
}

}  // namespace

Embedding::Embedding(const EmbeddingOptions& options, const ParameterScope& scope)
    : options_(options),
      tokens_(options.shared != nullptr ? options.shared : &add_tokens(options, scope)),
      positions_({.width = options.width,
                  .positions = options.positions,
                  .kind = options.position,
                  .join = options.join,
                  .sinusoid = options.sinusoid,
                  .init = options.init},
                 scope) {}

Variable Embedding::table(Tape& tape) const { return tape.table(*tokens_); }

TableRows Embedding::tokens_at(Tape& tape, Vec<const std::int32_t> ids) const {
  return {table(tape), ids, options_.padding, options_.scale};
}

Variable Embedding::token_rows(Tape& tape, Vec<const std::int32_t> ids) const {
  return embedding(tape, tokens_at(tape, ids));
}

Variable Embedding::position_rows(Tape& tape, Vec<const std::int32_t> places) const {
  return embedding(tape, positions_.rows(tape, places));
}

Variable Embedding::forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                            Variable* inputs) const {
  const TableRows tokens = tokens_at(tape, ids);
  if (inputs == nullptr && has_positions() && positions_.is_added()) {
    return embedding(tape, tokens, positions_.rows(tape, rows.positions));
  }
  Variable e = embedding(tape, tokens);
  if (inputs != nullptr) e = *inputs = as_input(tape, e);
  return positions_.join(tape, e, rows.positions);
}

EmbeddingBag::EmbeddingBag(const EmbeddingBagOptions& options, const ParameterScope& scope)
    : options_(options),
      weight_(&scope.add("weight", {options.rows, options.width}, options.init)) {
  weight_->row_use = options.row_use;
}

Variable EmbeddingBag::forward(Tape& tape, Vec<const std::int32_t> ids,
                               Vec<const std::int32_t> offsets, Variable* inputs) const {
  const Variable table = tape.table(*weight_);
  if (inputs == nullptr) {
    return embedding_bag(tape, {table, ids, offsets, options_.mode, options_.padding});
  }
  check(!options_.padding, "embedding bag: rows that are inputs have no padding");
  *inputs = as_input(tape, embedding(tape, {table, ids}));
  auto* const places = tape.saved<std::int32_t>(ids.size);
  std::iota(places, places + ids.size, 0);
  return embedding_bag(tape, {*inputs, {places, ids.size}, offsets, options_.mode});
}

namespace {

// As large as what is projected from normalised numbers, so that the first layer tells joints
// apart.
constexpr double kJointDeviation = 0.5;

LinearOptions projection_options(const FrameEmbeddingOptions& o) {
  return {.in = o.features, .out = o.width, .bias = Biases::kLearned, .weight = o.weight};
}

Parameter& add_joints(const FrameEmbeddingOptions& o, const ParameterScope& scope) {
  return scope.add("joints", {o.joints, o.width}, Init::normal(kJointDeviation), Decay::kNo);
}

}  // namespace

FrameEmbedding::FrameEmbedding(const FrameEmbeddingOptions& options, const ParameterScope& scope)
    : options_(options),
      dtype_(scope.dtype()),
      projection_(projection_options(options), scope),
      joints_(options.joints > 0 ? &add_joints(options, scope) : nullptr),
      positions_({.width = options.width,
                  .positions = options.positions,
                  .kind = options.position,
                  .join = options.join,
                  .sinusoid = options.sinusoid},
                 scope) {}

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
  return positions_.join(tape, y, rows.positions);
}

}  // namespace fovea
