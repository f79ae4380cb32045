// SPDX-License-Identifier: Apache-2.0
// Rows of bfloat16 on the way from a tape of float32 to the attention operator, and back.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "fovea/base/memory.h"
#include "fovea/base/precision.h"
#include "fovea/grad/tape.h"
#include "fovea/kernel/elementwise.h"

namespace fovea {

/// q, k and v, or their gradients; those that are not wanted are empty.
template <class T>
using ThreeRows = std::array<Rows<T>, 3>;
using ThreeGradients = std::array<GradientOut<float>, 3>;

inline ThreeRows<float> rows_of(const ThreeGradients& gradients) {
  ThreeRows<float> rows;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    if (gradients[n]) rows[n] = gradients[n].rows;
  }
  return rows;
}

template <class T>
index columns_of(const ThreeRows<T>& x) {
  return x[0].columns + x[1].columns + x[2].columns;
}

/// Whether they are neighbouring columns of one matrix, as one projection to all three leaves them.
/// One pass over its rows then replaces three over parts of them, which the processor prefetches
/// less well.
template <class T>
bool are_neighbours(const ThreeRows<T>& x) {
  if (columns_of(x) > x[0].stride) return false;
  for (std::size_t n = 0; n < x.size(); ++n) {
    if (x[n].data == nullptr || x[n].rows != x[0].rows || x[n].stride != x[0].stride) return false;
    if (n > 0 && x[n].data != x[n - 1].data + x[n - 1].columns) return false;
  }
  return true;
}

/// The matrix whose columns they are.
template <class T>
Rows<T> joined(const ThreeRows<T>& x) {
  return {x[0].data, x[0].rows, columns_of(x), x[0].stride};
}

/// Makes rows of bfloat16, which live as long as `scratch`.
class RoundedRows {
 public:
  RoundedRows(const Context& context, Scratch& scratch) : context_(context), scratch_(scratch) {}

  Rows<BFloat16> room(index rows, index columns) const {
    return {scratch_.allocate<BFloat16>(rows * columns), rows, columns};
  }
  Rows<BFloat16> round(Rows<const float> x) const {
    const Rows<BFloat16> rounded = room(x.rows, x.columns);
    round_rows(context_, x, rounded);
    return rounded;
  }
  ThreeRows<BFloat16> round(const ThreeRows<const float>& x) const {
    const ThreeRows<BFloat16> rounded = rooms_for(x);
    if (are_neighbours(x)) {
      round_rows(context_, joined(x), joined(rounded));
    } else {
      for (std::size_t n = 0; n < x.size(); ++n) round_rows(context_, x[n], rounded[n]);
    }
    return rounded;
  }
  /// Neighbours if x are.
  template <class T>
  ThreeRows<BFloat16> rooms_for(const ThreeRows<T>& x) const {
    ThreeRows<BFloat16> rooms;
    if (are_neighbours(x)) {
      const Rows<T> all = joined(x);
      const Rows<BFloat16> whole = room(all.rows, all.columns);
      for (std::size_t n = 0; n < x.size(); ++n) {
        const index begin = x[n].data - all.data;
        rooms[n] = whole.columns_slice(begin, begin + x[n].columns);
      }
    } else {
      for (std::size_t n = 0; n < x.size(); ++n) {
        if (x[n].columns > 0) rooms[n] = room(x[n].rows, x[n].columns);
      }
    }
    return rooms;
  }
  /// Writes or adds the rows where a gradient is wanted.
  void store(const ThreeRows<BFloat16>& from, const ThreeGradients& to) const {
    const ThreeRows<float> rows = rows_of(to);
    const bool writes = std::all_of(to.begin(), to.end(),
                                    [](const auto& out) { return out.store == Store::kWrite; });
    if (writes && are_neighbours(rows)) return widen_rows(context_, joined(from), joined(rows));
    for (std::size_t n = 0; n < to.size(); ++n) {
      if (!to[n]) continue;
      if (to[n].store == Store::kAdd) {
        accumulate(context_, from[n], rows[n]);
      } else {
        widen_rows(context_, from[n], rows[n]);
      }
    }
  }

 private:
  const Context& context_;
  Scratch& scratch_;
};

}  // namespace fovea
