// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

// The rows at which the sequences begin, in the tape's memory. Empty sequences have none.
Vec<const index> first_rows_of(Tape& tape, const PackedRows& rows, index N) {
  auto* firsts = tape.saved<index>(rows.count());
  index count = 0;
  if (rows.offsets.empty()) {
    if (N > 0) firsts[count++] = 0;
  } else {
    for (index s = 0; s < rows.count(); ++s) {
      if (rows.offsets[s] < rows.offsets[s + 1]) firsts[count++] = rows.offsets[s];
    }
  }
  return {firsts, count};
}

}  // namespace

Variable replace_first_rows(Tape& tape, Variable x, Variable by, const PackedRows& rows) {
  check_operand("replace_first_rows", "by", by, x.rows(), x.columns(), x.dtype());
  const Vec<const index> firsts = first_rows_of(tape, rows, x.rows());
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> values = y.value<T>();
    copy_rows<T>(tape.context(), x.value<T>(), values);
    for (const index n : firsts) std::copy_n(by.value<T>()[n], values.columns, values[n]);
    tape.record(y, {x, by}, [=](Tape& t) {
      const Rows<T> dy = t.take_gradient<T>(y);
      if (const auto dby = gradient_to_add_to<T>(t, by)) {
        for (const index n : firsts) {
          const Rows<T> row = dby.rows.slice(n, n + 1);
          accumulate<T>(t.context(), dy.slice(n, n + 1), row);
        }
      }
      for (const index n : firsts) std::fill_n(dy[n], dy.columns, T{0});
      pass_on<T>(t.context(), dy, t.gradient_for<T>(x));
    });
  });
  return y;
}

namespace {

// f of each pair, in parallel.
template <class F>
void for_each_pair(const Context& context, index pairs, index columns, F&& f) {
  context.for_ranges(pairs, 8.0 * static_cast<double>(columns), [&](index begin, index end) {
    for (index s = begin; s < end; ++s) f(s);
  });
}

template <class T>
void pair_forward(const T* u, const T* v, index C, T* y) {
  for (index c = 0; c < C; ++c) {
    y[c] = u[c];
    y[C + c] = v[c];
    y[2 * C + c] = std::abs(u[c] - v[c]);
    y[3 * C + c] = u[c] * v[c];
  }
}

template <class T>
void pair_backward(const T* u, const T* v, const T* dy, index C, T* du, T* dv) {
  for (index c = 0; c < C; ++c) {
    const T difference = u[c] - v[c];
    const T apart = difference > 0 ? dy[2 * C + c] : difference < 0 ? -dy[2 * C + c] : T{0};
    const T both = dy[3 * C + c];
    du[c] += dy[c] + apart + v[c] * both;
    dv[c] += dy[C + c] - apart + u[c] * both;
  }
}

}  // namespace

Variable pair_features(Tape& tape, Variable x) {
  check(x.rows() % 2 == 0, "pair_features: x has {} rows; expected two for each pair", x.rows());
  const index S = x.rows() / 2, C = x.columns();
  const Variable y = tape.result(S, 4 * C, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> in = x.value<T>();
    const Rows<T> out = y.value<T>();
    for_each_pair(tape.context(), S, C,
                  [&](index s) { pair_forward(in[2 * s], in[2 * s + 1], C, out[s]); });
    tape.record(y, {x}, [=](Tape& t) {
      const auto dx = gradient_to_add_to<T>(t, x);
      if (!dx) return;
      const Rows<const T> dy = t.gradient_of<T>(y), values = x.value<T>();
      for_each_pair(t.context(), S, C, [&](index s) {
        pair_backward(values[2 * s], values[2 * s + 1], dy[s], C, dx.rows[2 * s],
                      dx.rows[2 * s + 1]);
      });
    });
  });
  return y;
}

Variable stack_rows(Tape& tape, std::span<const Variable> operands) {
  check(!operands.empty(), "stack_rows: there are no operands");
  const Variable& first = operands[0];
  index N = 0;
  for (const Variable& part : operands) {
    check_operand("stack_rows", "every operand", part, part.rows(), first.columns(), first.dtype());
    N += part.rows();
  }
  auto* const parts = tape.saved<Variable>(static_cast<index>(operands.size()));
  std::uninitialized_copy(operands.begin(), operands.end(), parts);
  const std::size_t count = operands.size();
  const Variable y = tape.result(N, first.columns(), first.dtype());
  with_type(first.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto each = [=](Rows<T> whole, auto&& f) {
      index row = 0;
      for (std::size_t p = 0; p < count; row += parts[p++].rows()) {
        f(parts[p], whole.slice(row, row + parts[p].rows()));
      }
    };
    each(y.value<T>(),
         [&](Variable part, Rows<T> to) { copy_rows<T>(tape.context(), part.value<T>(), to); });
    tape.record(y, operands, [=](Tape& t) {
      each(t.take_gradient<T>(y), [&](Variable part, Rows<T> dy) {
        pass_on<T>(t.context(), dy, t.gradient_for<T>(part));
      });
    });
  });
  return y;
}

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
