// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/embedding.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

template <class T>
EmbeddingTable<T> kernel_table(const TableRows& rows) {
  if (!rows.table.defined()) return {};
  return {.table = rows.table.value<T>(), .ids = rows.ids, .scale = rows.scale};
}

using UsedRows = std::optional<std::vector<std::int32_t>>;

// The gradient of the table, to add rows to. `used` are the rows that may not be zero: at the start
// of a step only these have to be cleared.
template <class T>
GradientOut<T> gradient_of_table(Tape& tape, Variable table, UsedRows& used) {
  const GradientOut<T> dtable = tape.gradient_for<T>(table);
  if (!dtable || dtable.store == Store::kAdd) return dtable;
  if (used) {
    for (const std::int32_t row : *used) std::fill_n(dtable.rows[row], dtable.rows.columns, T{0});
  } else {
    fill(tape.context(), T{0}, dtable.rows);
  }
  used.emplace();
  return dtable;
}

template <class T>
void scatter(Tape& tape, const TableRows& rows, Rows<const T> dy) {
  Parameter* const parameter = rows.table.defined() ? rows.table.parameter() : nullptr;
  // If the gradient has no memory yet, all its rows must be cleared.
  const bool known = parameter != nullptr && parameter->gradient.defined();
  UsedRows used = known ? std::exchange(parameter->used_rows, std::nullopt) : std::nullopt;
  const auto dtable = gradient_of_table<T>(tape, rows.table, used);
  if (!dtable) return;
  const bool frozen = rows.frozen.has_value();
  Scratch scratch;
  const index C = frozen ? dy.columns : 0;
  T* const row = frozen ? dtable.rows[*rows.frozen] : nullptr;
  T* const before = scratch.allocate<T>(C);
  std::copy_n(row, C, before);
  embedding_backward(tape.context(), rows.ids, rows.scale, dy, dtable.rows);
  std::copy_n(before, C, row);
  // A list as long as the table saves no work.
  if (parameter == nullptr || !used || std::ssize(*used) + rows.ids.size >= dtable.rows.rows)
    return;
  used->insert(used->end(), rows.ids.begin(), rows.ids.end());
  parameter->used_rows = std::move(used);
}

}  // namespace

Variable embedding(Tape& tape, const TableRows& tokens, const TableRows& positions) {
  check(tokens.table.defined(), "embedding: the table is missing");
  const index C = tokens.table.columns();
  const DType dtype = tokens.table.dtype();
  if (positions.table.defined()) {
    check_operand("embedding", "the table of positions", positions.table, positions.table.rows(), C,
                  dtype);
  }
  for (const TableRows* rows : {&tokens, &positions}) {
    check(!rows->frozen || (*rows->frozen >= 0 && *rows->frozen < rows->table.rows()),
          "embedding: the frozen row {} is not in the table", rows->frozen.value_or(0));
  }
  const Variable y = tape.result(tokens.ids.size, C, dtype);
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    embedding_forward(tape.context(), kernel_table<T>(tokens), kernel_table<T>(positions),
                      y.value<T>());
    tape.record(y, {tokens.table, positions.table}, [=](Tape& t) {
      scatter(t, tokens, t.gradient_of<T>(y));
      scatter(t, positions, t.gradient_of<T>(y));
    });
  });
  return y;
}

}  // namespace fovea
