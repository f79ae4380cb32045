// SPDX-License-Identifier: Apache-2.0
// The shared part of the kernels that turn the rows of each sequence into one row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/base/context.h"
#include "fovea/base/view.h"

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

}  // namespace fovea
