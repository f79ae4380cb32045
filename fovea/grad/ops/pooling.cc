// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/kernel/convolution.h"
#include "fovea/kernel/over_time.h"

namespace fovea {

namespace {

enum class Row { kFirst, kLast };

// The first or last row of each sequence to or from row s, or what stands for one that is not
// there.
template <class F, class G>
void for_each_row(Vec<const std::int32_t> offsets, Row row, F&& copy, G&& without) {
  for (index s = 0; s + 1 < offsets.size; ++s) {
    const index first = offsets[s], end = offsets[s + 1];
    first < end ? copy(s, row == Row::kFirst ? first : end - 1) : without(s);
  }
}

// Zeros in the rows whose window reaches beyond the ends of its sequence.
template <class T>
void clear_ends(const Context& context, Vec<const std::int32_t> offsets, index width, Rows<T> x) {
  const Window window{.width = width};
  const double work = static_cast<double>(width) * static_cast<double>(x.columns);
  context.for_ranges(offsets.size - 1, work, [&](index begin, index end) {
    for (index s = begin; s < end; ++s) {
      const index first = offsets[s], last = offsets[s + 1];
      if (last - first < width) continue;
      for (index n = first; n < first + window.before(); ++n) std::fill_n(x[n], x.columns, T{0});
      for (index n = last - window.after(); n < last; ++n) std::fill_n(x[n], x.columns, T{0});
    }
  });
}

Variable one_over_time(Tape& tape, Variable x, const PackedRows& rows, Row row) {
  const char* const name = row == Row::kFirst ? "first_over_time" : "last_over_time";
  const Vec<const std::int32_t> offsets = offsets_of(tape, name, rows, x.rows());
  const index C = x.columns();
  const Variable y = tape.result(rows.count(), C, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> to = y.value<T>();
    for_each_row(
        offsets, row, [&](index s, index n) { std::copy_n(x.value<T>()[n], C, to[s]); },
        [&](index s) { std::fill_n(to[s], C, T{0}); });
    tape.record(y, {x}, [=](Tape& t) {
      const GradientOut<T> dx = gradient_to_add_to<T>(t, x);
      if (!dx) return;
      const Rows<const T> dy = t.gradient_of<T>(y);
      for_each_row(
          offsets, row,
          [&](index s, index n) {
            accumulate<T>(t.context(), dy.slice(s, s + 1), dx.rows.slice(n, n + 1));
          },
          [](index) {});
    });
  });
  return y;
}

}  // namespace

Variable max_over_time(Tape& tape, Variable x, const PackedRows& rows) {
  const Vec<const std::int32_t> offsets = offsets_of(tape, "max_over_time", rows, x.rows());
  const Variable y = tape.result(rows.count(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    max_over_time_forward(tape.context(), x.value<T>(), offsets, y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(x), [&](Rows<T> dx) {
        max_over_time_backward<T>(t.context(),
                                  {x.value<T>(), y.value<T>(), t.gradient_of<T>(y), offsets, dx});
      });
    });
  });
  return y;
}

Variable whole_windows(Tape& tape, Variable x, index width, const PackedRows& rows) {
  check(width > 0, "whole_windows: the width of a window must be positive; it is {}", width);
  const Vec<const std::int32_t> offsets = offsets_of(tape, "whole_windows", rows, x.rows());
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    copy_rows<T>(tape.context(), x.value<T>(), y.value<T>());
    clear_ends(tape.context(), offsets, width, y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      const Rows<T> dy = t.take_gradient<T>(y);
      clear_ends(t.context(), offsets, width, dy);
      pass_on<T>(t.context(), dy, t.gradient_for<T>(x));
    });
  });
  return y;
}

Variable mean_over_time(Tape& tape, Variable x, const PackedRows& rows) {
  const Vec<const std::int32_t> offsets = offsets_of(tape, "mean_over_time", rows, x.rows());
  const Variable y = tape.result(rows.count(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    mean_over_time_forward(tape.context(), x.value<T>(), offsets, y.value<T>());
    tape.record(y, {x}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(x), [&](Rows<T> dx) {
        mean_over_time_backward(t.context(), t.gradient_of<T>(y), offsets, dx);
      });
    });
  });
  return y;
}

Variable first_over_time(Tape& tape, Variable x, const PackedRows& rows) {
  return one_over_time(tape, x, rows, Row::kFirst);
}

Variable last_over_time(Tape& tape, Variable x, const PackedRows& rows) {
  return one_over_time(tape, x, rows, Row::kLast);
}

Variable attention_over_time(Tape& tape, Variable x, Variable query, const PackedRows& rows) {
  check_operand("attention_over_time", "query", query, 1, x.columns(), x.dtype());
  PackedRows keys = rows, queries;
  keys.offsets = offsets_of(tape, "attention_over_time", rows, x.rows());
  const index S = keys.count();
  queries.offsets = numbers(tape, S + 1);
  auto* const zeros = tape.saved<std::int32_t>(S);
  std::fill_n(zeros, S, 0);
  const Variable q = embedding(tape, {query, {zeros, S}});  // the one row, S times
  return attention(tape, {q, x, x, queries, keys}, {});
}

}  // namespace fovea
