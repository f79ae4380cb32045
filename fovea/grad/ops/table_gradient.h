// SPDX-License-Identifier: Apache-2.0
// The gradient of a table of which an op reads rows by their ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fovea/grad/ops/common.h"

namespace fovea {

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

}  // namespace fovea
