// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/embedding.h"

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/table_gradient.h"

namespace fovea {

namespace {

template <class T>
EmbeddingTable<T> kernel_table(Tape& tape, const TableRows& rows) {
  if (!rows.table.defined()) return {};
  return {.table = rows.table.rows_at<T>(tape.context(), rows.ids),
          .ids = rows.ids,
          .scale = rows.scale};
}

template <class T>
void scatter(Tape& tape, const TableRows& rows, Rows<const T> dy) {
  if (!rows.table.defined()) return;
  add_to_table<T>(tape, rows.table, rows.ids, rows.frozen, [&](const TableGradient<T>& to) {
    embedding_backward(tape.context(), to.places, rows.scale, dy, to.rows, to.frozen);
  });
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
    embedding_forward(tape.context(), kernel_table<T>(tape, tokens),
                      kernel_table<T>(tape, positions), y.value<T>());
    tape.record(y, {tokens.table, positions.table}, [=](Tape& t) {
      scatter(t, tokens, t.gradient_of<T>(y));
      scatter(t, positions, t.gradient_of<T>(y));
    });
  });
  return y;
}

}  // namespace fovea
