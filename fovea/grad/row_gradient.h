// SPDX-License-Identifier: Apache-2.0
// The gradient of a large table of which a step reads few rows: these rows alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/kernel/adamw.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// Rows that are not in the list are zero. Rows are in the order in which they came, so all of it
/// depends on the ids alone.
class RowGradient {
 public:
  bool empty() const { return size() == 0; }
  index size() const { return state_ ? static_cast<index>(state_->ids.size()) : 0; }
  /// The row of the table that each of rows() is.
  Vec<const std::int32_t> ids() const {
    return state_ ? Vec<const std::int32_t>(state_->ids) : Vec<const std::int32_t>();
  }

  /// The place of the row of each id in rows(), for a table like `table` [V,C]; rows that are new
  /// are zero. ids [N], each in [0, V) (kShape otherwise). The result is valid until the next call.
  Vec<const std::int32_t> add(const Context& context, const Tensor& table,
                              Vec<const std::int32_t> ids);
  /// The place of a row that has one, or -1.
  std::int32_t place_of(std::int32_t id) const;
  /// [size(), C]
  template <class T>
  Rows<T> rows();
  /// Which row of the table each of rows() is, ascending. Valid until the next call of add().
  Vec<const GradientRow> sorted();
  /// table += rows
  void add_to(Tensor& table);

  /// Makes the gradient zero; its memory is kept for the next step.
  void clear();
  /// The bytes of the memory of rows.
  index byte_size() const { return state_ ? state_->memory.byte_size() : 0; }

 private:
  struct State {
    std::vector<std::int32_t> place;   // of each row of the table, or -1
    std::vector<std::int32_t> ids;     // of each place
    std::vector<std::int32_t> places;  // the result of add
    std::vector<GradientRow> sorted;
    Tensor memory;  // [room, C]
  };

  void reserve(const Tensor& table, index rows);

  // Most parameters are no tables, and a deep model has a million of them: theirs is one pointer.
  std::unique_ptr<State> state_;
};

}  // namespace fovea
