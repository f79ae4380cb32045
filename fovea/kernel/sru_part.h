// SPDX-License-Identifier: Apache-2.0
// The item of work of an SRU. Nothing outside sru.cc needs this header.
#pragma once

#include "fovea/kernel/sru.h"

namespace fovea::detail {

/// Columns [begin, end) of one sequence; row k of the sequence, in the order of time, is n(k).
template <class T>
struct SruPart {
  const SruRun<T>& run;
  index sequence, begin, end;

  index length() const { return run.offsets[sequence + 1] - run.offsets[sequence]; }
  index n(index k) const {
    const bool reverse = run.direction == TimeDirection::kReverse;
    return reverse ? run.offsets[sequence + 1] - 1 - k : run.offsets[sequence] + k;
  }
  /// c before step k, or null for 0.
  const T* cell_before(index k) const {
    if (k > 0) return run.cells[n(k - 1)];
    return run.first_cell.data == nullptr ? nullptr : run.first_cell[sequence];
  }
  const T* highway(index row) const {
    const index H = run.hidden.columns;
    return run.highway.columns == 0 ? run.gates[row] + 3 * H : run.highway[row];
  }
};

/// The backward of a part. carry and the sums of dv_f and dv_r are [H] each.
template <class T>
struct SruPull {
  SruPart<T> part;
  const SruGradient<T>& gradient;
  T* carry;
  T* dv_f;
  T* dv_r;
};

}  // namespace fovea::detail
