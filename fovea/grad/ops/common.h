// SPDX-License-Identifier: Apache-2.0
// What the ops share.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "fovea/grad/tape.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

/// Error(kShape) unless `x` is there, [rows, columns], and of the op's type.
inline void check_operand(std::string_view op, std::string_view name, Variable x, index rows,
                          index columns, DType dtype) {
  check(x.defined(), "{}: {} is missing", op, name);
  check(x.rows() == rows && x.columns() == columns, "{}: {} must be [{}, {}]; it is [{}, {}]", op,
        name, rows, columns, x.rows(), x.columns());
  check(x.dtype() == dtype, "{}: {} must be {}; it is {}", op, name, to_string(dtype),
        to_string(x.dtype()));
}

inline void check_vector(std::string_view op, std::string_view name, Variable x, index size,
                         DType dtype) {
  if (x.defined()) check_operand(op, name, x, 1, size, dtype);
}

/// The gradient of x for kernels that only know how to add: zero if nothing is there yet.
template <class T>
GradientOut<T> gradient_to_add_to(Tape& tape, Variable x) {
  const GradientOut<T> dx = tape.gradient_for<T>(x);
  if (dx && dx.store == Store::kWrite) fill(tape.context(), T{0}, dx.rows);
  return dx;
}

/// Whether products of `rows` rows read a weight where it lies: one that every step changes is not
/// worth a packed copy for few rows, even if micro-batches share it.
inline bool reads_in_place(const Tape& tape, index rows) {
  return tape.mode() == TapeMode::kTrain && rows <= kRowsInPlace;
}

/// dx += dy, or dx = dy.
template <class T>
void pass_on(const Context& context, Rows<const T> dy, const GradientOut<T>& dx) {
  if (!dx) return;
  if (dx.store == Store::kAdd)
    accumulate(context, dy, dx.rows);
  else
    copy_rows(context, dy, dx.rows);
}

/// dx = dy or dx += dy, where nothing else is done with dy: without a copy if that can be.
template <class T>
void hand_over(Tape& tape, Variable y, Variable x) {
  if (tape.hand_over_gradient(y, x)) return;
  pass_on(tape.context(), tape.gradient_of<T>(y), tape.gradient_for<T>(x));
}

}  // namespace fovea
