// SPDX-License-Identifier: Apache-2.0
// Helpers of the ops.
#pragma once

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

/// The values of x as a product reads them.
template <class T>
ProductRows<const T> product_rows(Variable x) {
  if constexpr (std::is_same_v<T, float>) {
    if (x.dtype() == DType::kBFloat16) return x.value<BFloat16>();
  }
  return x.value<T>();
}

/// The values of y as a product writes them.
template <class T>
ProductRows<T> product_rows_to(Variable y) {
  if constexpr (std::is_same_v<T, float>) {
    if (y.dtype() == DType::kBFloat16) return y.value<BFloat16>();
  }
  return y.value<T>();
}

/// The gradient of y as a product reads it.
template <class T>
ProductRows<const T> product_gradient_of(const Tape& tape, Variable y) {
  if constexpr (std::is_same_v<T, float>) {
    if (y.dtype() == DType::kBFloat16) return tape.gradient_of<BFloat16>(y);
  }
  return tape.gradient_of<T>(y);
}

/// Where a product writes a gradient, and how.
template <class T>
struct ProductGradient {
  ProductRows<T> rows;
  MatmulOptions<T> options;
  bool wanted = false;

  explicit operator bool() const { return wanted; }
};
template <class T>
ProductGradient<T> product_gradient_for(Tape& tape, Variable x) {
  const auto with = [&](const auto& out) -> ProductGradient<T> {
    if (!out) return {};
    const Rows<const T> times = tape.slope_of<T>(x);
    check(out.store == Store::kWrite || (times.data == nullptr && x.dtype() == kDTypeOf<T>),
          "tape: two ops read a result that was made for one");
    return {out.rows, {.times = times, .store = out.store}, true};
  };
  if constexpr (std::is_same_v<T, float>) {
    if (x.dtype() == DType::kBFloat16) return with(tape.gradient_for<BFloat16>(x));
  }
  return with(tape.gradient_for<T>(x));
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
