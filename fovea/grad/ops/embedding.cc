// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/embedding.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

/// Where an op adds the gradients of the rows of a table: those of ids[n] in rows[places[n]]. The
/// row `frozen`, if not -1, gets nothing.
template <class T>
struct TableGradient {
  Rows<T> rows;
  Vec<const std::int32_t> places;
  std::int32_t frozen = -1;
};

namespace detail {

using UsedRows = std::optional<std::vector<std::int32_t>>;

// All rows, to add to. `used` are those that may not be zero: at the start of a step only these
// have to be cleared.
template <class T>
GradientOut<T> whole_gradient(Tape& tape, Variable table, UsedRows& used) {
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

}  // namespace detail

/// Calls add(TableGradient<T>) for the gradient of the rows `ids` of `table`, if it needs one. A
/// RowUse::kSparse parameter keeps these rows alone, unless another op has asked for all of them.
template <class T, class Add>
void add_to_table(Tape& tape, Variable table, Vec<const std::int32_t> ids,
                  std::optional<std::int32_t> frozen, Add&& add) {
  if (!table.needs_gradient()) return;
  Parameter* const parameter = table.parameter();
  if (parameter != nullptr && parameter->row_use == RowUse::kSparse && !parameter->has_gradient) {
    if (ids.empty()) return;
    RowGradient& gradient = parameter->row_gradient;
    const auto places = gradient.add(tape.context(), parameter->value, ids);
    const std::int32_t place = frozen ? gradient.place_of(*frozen) : -1;
    return add(TableGradient<T>{gradient.rows<T>(), places, place});
  }
  // If the gradient has no memory yet, all its rows must be cleared.
  const bool known = parameter != nullptr && parameter->gradient.defined();
  detail::UsedRows used = known ? std::exchange(parameter->used_rows, std::nullopt) : std::nullopt;
  const auto dtable = detail::whole_gradient<T>(tape, table, used);
  add(TableGradient<T>{dtable.rows, ids, frozen.value_or(-1)});
  // A list as long as the table saves no work.
  if (parameter == nullptr || !used || std::ssize(*used) + ids.size >= dtable.rows.rows) return;
  used->insert(used->end(), ids.begin(), ids.end());
  parameter->used_rows = std::move(used);
}

// The rows of a table that lies in blocks: they alone, in the order of their ids.
EmbeddingTable<float> widened_rows(Tape& tape, const TableRows& rows, const BlockMatrix& blocks) {
  check(!rows.table.needs_gradient(), "embedding: a table that lies in blocks has no gradient");
  const index N = rows.ids.size, C = blocks.columns();
  const Rows<float> table(tape.saved<float>(N * C), N, C);
  widen_rows(tape.context(), blocks, rows.ids, table);
  return {.table = table, .ids = numbers(tape, N), .scale = rows.scale};
}

template <class T>
EmbeddingTable<T> kernel_table(Tape& tape, const TableRows& rows) {
  if (!rows.table.defined()) return {};
  if constexpr (std::is_same_v<T, float>) {
    if (const BlockMatrix* const blocks = blocks_of(rows.table)) {
      return widened_rows(tape, rows, *blocks);
    }
  }
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
  const Parameter* const parameter = tokens.table.parameter();
  check(parameter == nullptr || parameter->changes.empty(), "embedding: a table has no adapters");
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

Variable embedding_bag(Tape& tape, const TableBags& bags) {
  check(bags.table.defined(), "embedding_bag: the table is missing");
  check(!bags.offsets.empty(), "embedding_bag: offsets are [B + 1]; there are none");
  check(!bags.padding || (*bags.padding >= 0 && *bags.padding < bags.table.rows()),
        "embedding_bag: the padding {} is not in the table", bags.padding.value_or(0));
  const IdBags of{bags.ids, bags.offsets, bags.mode, bags.padding.value_or(-1)};
  const Variable y = tape.result(of.count(), bags.table.columns(), bags.table.dtype());
  with_type(y.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto table = bags.table.rows_at<T>(tape.context(), bags.ids);
    embedding_bag_forward(tape.context(), table, of, y.value<T>());
    tape.record(y, {&bags.table, 1}, [=](Tape& t) {
      add_to_table<T>(t, bags.table, bags.ids, bags.padding, [&](const TableGradient<T>& to) {
        const IdBags places{to.places, bags.offsets, bags.mode, to.frozen};
        embedding_bag_backward(t.context(), places, t.gradient_of<T>(y), to.rows);
      });
    });
  });
  return y;
}

}  // namespace fovea
