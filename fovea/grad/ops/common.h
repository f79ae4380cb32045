// SPDX-License-Identifier: Apache-2.0
// Helpers of the ops.
#pragma once

#include <cstdint>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fovea/grad/packed_rows.h"
#include "fovea/grad/tape.h"
#include "fovea/kernel/gemm.h"

namespace fovea {

/// Throws Error(kShape) unless `x` is defined, has the shape [rows, columns] and the op's type.
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

/// 0, 1, .., count - 1, in the memory of the tape: ids of rows that are used in their order, and
/// the offsets of sequences of one row each.
inline Vec<const std::int32_t> numbers(Tape& tape, index count) {
  auto* const memory = tape.saved<std::int32_t>(count);
  std::iota(memory, memory + count, 0);
  return {memory, count};
}

/// The blocks of a weight that lies in them, or null.
inline const BlockMatrix* blocks_of(Variable weight) {
  return weight.parameter() == nullptr ? nullptr : weight.parameter()->blocks.get();
}

/// The gradient of x for kernels that can only add to it: filled with zeros if nothing was written
/// yet.
template <class T>
GradientOut<T> gradient_to_add_to(Tape& tape, Variable x) {
  const GradientOut<T> dx = tape.gradient_for<T>(x);
  if (dx && dx.store == Store::kWrite) fill(tape.context(), T{0}, dx.rows);
  return dx;
}

/// Whether products of `rows` rows read a weight in place. Training changes the weight at every
/// step, so a packed copy does not pay off for few rows, even if micro-batches share it.
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

/// dx = dy or dx += dy, if dy is not used afterwards: without a copy if possible.
template <class T>
void hand_over(Tape& tape, Variable y, Variable x) {
  if (tape.hand_over_gradient(y, x)) return;
  pass_on(tape.context(), tape.gradient_of<T>(y), tape.gradient_for<T>(x));
}

}  // namespace fovea
