// SPDX-License-Identifier: Apache-2.0
// Cuts element-wise work into spans.
#pragma once

#include "fovea/base/context.h"

namespace fovea {

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

}  // namespace fovea
