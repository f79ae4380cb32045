// SPDX-License-Identifier: Apache-2.0
// The rows of each sequence become one row: the maximum of each column over the rows of each
// sequence (Collobert et al. 2011, "Natural language processing (almost) from scratch",
// section 3.2.2; TextCNN: Kim 2014), or the mean of each column over the rows of each sequence:
// Keras' GlobalAveragePooling1D.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/view.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// Throws Error(kShape) unless there are `sequences` + 1 offsets that run from 0 to `rows`.
inline void check_offsets(std::string_view op, Vec<const std::int32_t> offsets, index sequences,
                          index rows) {
  check(offsets.size == sequences + 1 && offsets[0] == 0 && offsets[sequences] == rows,
        "{}: {} sequences of {} rows need {} offsets from 0 to {}; got {}", op, sequences, rows,
        sequences + 1, rows, offsets.size);
}

/// Calls f(sequence, first column, last column) for strips of the columns of each sequence, which
/// the threads share.
template <class F>
void for_each_strip(const Context& ctx, Vec<const std::int32_t> offsets, index columns, F&& f) {
  constexpr index kStrip = 256;  // columns
  const index sequences = offsets.size - 1;
  if (sequences == 0) return;
  const index strips = (columns + kStrip - 1) / kStrip;
  const double values = static_cast<double>(offsets[sequences]) * static_cast<double>(columns);
  const index items = sequences * strips;
  ctx.for_ranges(items, values / static_cast<double>(items) + 1, [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      const index column = i % strips * kStrip;
      f(i / strips, column, std::min(columns, column + kStrip));
    }
  });
}

/// y[s][c] = the largest x[n][c] for n from offsets[s] to offsets[s + 1] - 1; 0 if there is none,
/// NaN if one is NaN. x [N, C], y [sequences, C], offsets [sequences + 1].
template <class T>
void max_over_time_forward(const Context& ctx, InRows<T> x, Vec<const std::int32_t> offsets,
                           Rows<T> y);

/// The operands of the backward.
template <class T>
struct MaxOverTimeBackward {
  Rows<const T> x, y, dy;  ///< y from the forward
  Vec<const std::int32_t> offsets;
  Rows<T> dx;
};

/// dx[n][c] = dy[s][c] in the first row n of sequence s whose x is y[s][c], and 0 in all others.
template <class T>
void max_over_time_backward(const Context& ctx, const MaxOverTimeBackward<T>& a);

/// y[s] = the sum of x[n] for n from offsets[s] to offsets[s + 1] - 1, in this order, divided by
/// their number; 0 if there is none. x [N, C], y [sequences, C], offsets [sequences + 1].
template <class T>
void mean_over_time_forward(const Context& ctx, InRows<T> x, Vec<const std::int32_t> offsets,
                            Rows<T> y);

/// dx[n] = dy[s] / the number of rows of sequence s, to which row n belongs.
template <class T>
void mean_over_time_backward(const Context& ctx, InRows<T> dy, Vec<const std::int32_t> offsets,
                             Rows<T> dx);

}  // namespace fovea
