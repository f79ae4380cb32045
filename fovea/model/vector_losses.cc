// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/vector_losses.h"

#include <algorithm>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/grad/ops.h"

namespace fovea {

namespace {

// A logit so low that its probability is 0, and no product of it is infinite.
constexpr double kNever = -1e9;

Variable rows_at(Tape& tape, Variable x, Vec<const std::int32_t> rows) {
  return embedding(tape, TableRows{x, rows});
}

// 0, or kNever where a candidate is left out: [n, m].
Variable left_out_of(Tape& tape, const RankedTexts& texts, DType dtype) {
  const index n = texts.anchors.size, m = texts.candidates.size;
  Variable mask;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    auto* const values = tape.saved<T>(n * m);
    std::transform(texts.left_out.begin(), texts.left_out.end(), values,
                   [](std::uint8_t is_out) { return static_cast<T>(is_out != 0 ? kNever : 0); });
    mask = tape.constant(Rows<const T>{values, n, m});
  });
  return mask;
}

// 1, as many as columns: the product with it is the sum of a row.
Variable ones(Tape& tape, index columns, DType dtype) {
  Variable row;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    auto* const values = tape.saved<T>(columns);
    std::fill_n(values, columns, T{1});
    row = tape.constant(Rows<const T>{values, 1, columns});
  });
  return row;
}

// The sum of loss_of(the first columns) over options.columns.
template <class LossOf>
Variable summed(Tape& tape, index width, const VectorLossOptions& options, const LossOf& loss_of) {
  if (options.columns.empty()) return loss_of(width);
  Variable sum;
  for (const index columns : options.columns) {
    const Variable loss = loss_of(columns);
    sum = sum.defined() ? add(tape, sum, loss) : loss;
  }
  return sum;
}

}  // namespace

Variable ranking_loss(Tape& tape, Variable vectors, const RankedTexts& texts,
                      const VectorLossOptions& options) {
  const index n = texts.anchors.size, m = texts.candidates.size;
  check(m >= n, "ranking_loss: {} candidates for {} anchors", m, n);
  check(texts.left_out.size == n * m, "ranking_loss: left_out has {} places for {} x {}",
        texts.left_out.size, n, m);
  auto* const own = tape.saved<std::int32_t>(n);
  for (index i = 0; i < n; ++i) own[i] = static_cast<std::int32_t>(i);
  return summed(tape, vectors.columns(), options, [&](index columns) {
    const Variable unit = unit_rows(tape, vectors, columns);
    const Variable cosines =
        linear(tape, rows_at(tape, unit, texts.anchors), rows_at(tape, unit, texts.candidates));
    const Variable logits = add(tape, scale(tape, cosines, 1 / options.temperature),
                                left_out_of(tape, texts, vectors.dtype()));
    return cross_entropy(tape, logits, {.ids = {own, n}}, options.scale);
  });
}

Variable similarity_loss(Tape& tape, Variable vectors, const ScoredTexts& texts,
                         const VectorLossOptions& options) {
  check(texts.first.size == texts.second.size && texts.first.size == texts.scores.size,
        "similarity_loss: {} first texts, {} second ones, {} scores", texts.first.size,
        texts.second.size, texts.scores.size);
  return summed(tape, vectors.columns(), options, [&](index columns) {
    const Variable unit = unit_rows(tape, vectors, columns);
    const Variable both =
        multiply(tape, rows_at(tape, unit, texts.first), rows_at(tape, unit, texts.second));
    const Variable cosines = linear(tape, both, ones(tape, columns, vectors.dtype()));
    return cosent_loss(tape, cosines, texts.scores, options.temperature, options.scale);
  });
}

}  // namespace fovea
