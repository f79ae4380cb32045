// SPDX-License-Identifier: Apache-2.0
// Shared by the kernels of this folder: their parameter types, the checks of shapes on entry, and
// how element-wise work is cut into spans.
//
// Every kernel is a template over T, instantiated for float and double: training runs in float, the
// gradient checks run the same code in double. T is deduced from the outputs.
#pragma once

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/memory.h"
#include "fovea/base/view.h"

namespace fovea {

/// Inputs. Views of mutable memory convert to these; T is not deduced from them.
template <class T>
using InRows = Rows<const std::type_identity_t<T>>;
template <class T>
using InVec = Vec<const std::type_identity_t<T>>;

/// Whether a kernel replaces what its output holds, or adds to it.
enum class Store { kWrite, kAdd };

/// Throws Error(kShape) unless x is [rows, columns]: "softmax: y must be [2, 5]; it is [2, 4]".
template <class T>
void check_rows(std::string_view operation, std::string_view name, const Rows<T>& x, index rows,
                index columns) {
  check(x.rows == rows && x.columns == columns, "{}: {} must be [{}, {}]; it is [{}, {}]",
        operation, name, rows, columns, x.rows, x.columns);
}

/// Throws Error(kShape) unless x is [size]: "layer_norm: gain must be [C=5]; it is [4]".
template <class T>
void check_vec(std::string_view operation, std::string_view name, const Vec<T>& x,
               std::string_view letter, index size) {
  check(x.size == size, "{}: {} must be [{}={}]; it is [{}]", operation, name, letter, size,
        x.size);
}

/// As check_vec, for an argument that may be left out (empty).
template <class T>
void check_optional(std::string_view operation, std::string_view name, const Vec<T>& x,
                    std::string_view letter, index size) {
  if (!x.empty()) check_vec(operation, name, x, letter, size);
}

enum class Layout { kContiguous, kStrided };

/// kContiguous if every view is contiguous: then all rows can be treated as one long row.
template <class... Views>
Layout layout_of(const Views&... views) {
  return (views.contiguous() && ...) ? Layout::kContiguous : Layout::kStrided;
}

/// Calls f(row, first, n) for spans that cover [rows, columns]: n values of `row` from column
/// `first`. If all views are contiguous, a span may cover many rows, and its row is 0. `cost` is
/// the work of an element in operations. The effect of f on a value must not depend on where its
/// span ends.
template <class F>
void for_spans(const Context& ctx, index rows, index columns, Layout layout, double cost, F&& f) {
  if (rows == 0 || columns == 0) return;
  if (layout == Layout::kContiguous) {
    ctx.for_ranges(rows * columns, cost,
                   [&](index begin, index end) { f(index{0}, begin, end - begin); });
  } else {
    ctx.for_ranges(rows, cost * static_cast<double>(columns), [&](index begin, index end) {
      for (index row = begin; row < end; ++row) f(row, index{0}, columns);
    });
  }
}

// Sums over rows whose bits do not depend on the number of threads: the rows are cut into chunks by
// the size of the problem, each chunk has its own sums, and these are added in ascending order.

/// Cuts N rows into chunks and calls chunk(begin, end, partial) for the rows [begin, end) of each.
/// `partial` [columns] is zeroed memory of the chunk, to which it adds; sums[c] gets the total.
/// `cost` is the work of a row in operations.
template <class T, class F>
void add_chunk_sums(const Context& ctx, index N, double cost, Vec<T> sums, F&& chunk) {
  // Chunks are long enough to be worth handing to a thread, and few enough that adding them is
  // cheap.
  constexpr double kChunkCost = 65536;
  constexpr index kMostChunks = 32;
  const auto enough = static_cast<index>(kChunkCost / std::max(cost, 1.0)) + 1;
  const index length = std::max(enough, (N + kMostChunks - 1) / kMostChunks);
  const index chunks = (N + length - 1) / length;
  Scratch scratch;
  T* const partial = scratch.template allocate<T>(std::max<index>(chunks * sums.size, 1));
  ctx.for_each(chunks, [&](index i) {
    T* const mine = partial + i * sums.size;
    std::fill_n(mine, sums.size, T{0});
    chunk(i * length, std::min(N, (i + 1) * length), mine);
  });
  ctx.run_here([&] {
    for (index i = 0; i < chunks; ++i)
      for (index c = 0; c < sums.size; ++c) sums[c] += partial[i * sums.size + c];
  });
}

}  // namespace fovea
