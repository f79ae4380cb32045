// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

// Calls f(part, its columns of y) for each part.
template <class T, class F>
void for_each_part(std::span<const Variable> parts, Rows<T> y, F&& f) {
  index column = 0;
  for (const Variable& part : parts) {
    f(part, y.columns_slice(column, column + part.columns()));
    column += part.columns();
  }
}

// A copy of the operands that lives until the tape is reset, for the closure.
std::span<const Variable> kept(Tape& tape, std::span<const Variable> parts) {
  auto* copy = tape.saved<Variable>(static_cast<index>(parts.size()));
  std::uninitialized_copy(parts.begin(), parts.end(), copy);
  return {copy, parts.size()};
}

}  // namespace

// The gradients of the parts are columns of the gradient of the whole, so no closure is recorded.
std::span<const Variable> split_columns(Tape& tape, Variable x, std::span<const index> widths) {
  return tape.split(x, widths);
}

Variable concat_columns(Tape& tape, std::span<const Variable> operands) {
  check(!operands.empty(), "concat_columns: there are no operands");
  const Variable& first = operands[0];
  index columns = 0;
  for (const Variable& part : operands) {
    check_operand("concat_columns", "every operand", part, first.rows(), part.columns(),
                  first.dtype());
    columns += part.columns();
  }
  const auto parts = kept(tape, operands);
  const Variable y = tape.result(first.rows(), columns, first.dtype());
  with_type(first.dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_part(parts, y.value<T>(), [&](Variable part, Rows<T> target) {
      copy_rows(tape.context(), part.value<T>(), target);
    });
    tape.record(y, parts, [=](Tape& t) {
      for_each_part(parts, t.gradient_of<T>(y), [&](Variable part, Rows<const T> dy) {
        pass_on(t.context(), dy, t.gradient_for<T>(part));
      });
    });
  });
  return y;
}

}  // namespace fovea
