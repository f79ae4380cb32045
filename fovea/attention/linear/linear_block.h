// SPDX-License-Identifier: Apache-2.0
// The blocks of sums of the form sum over y of (a_x . b_y) c_y, in either order (linear.h).
#pragma once

#include <algorithm>

#include "fovea/base/view.h"

namespace fovea::detail {

/// Rows of a block, which enters a state as a whole.
inline constexpr index kLinearBlock = 128;

/// A block of rows x and y whose scores are computed one by one: row r of x keeps the first `kept +
/// r` rows of y, or all.
template <class T>
struct DirectBlock {
  Rows<const T> a, b, c;
  index kept;
  bool keeps_all;

  index kept_by(index r) const {
    return keeps_all ? b.rows : std::clamp<index>(kept + r, 0, b.rows);
  }
};

/// The functions of one instruction set. `state` [columns of b, columns of c] and `sum` [rows of a,
/// columns of c] have rows of whole vectors of `lanes`; b and c have the same rows.
template <class T>
struct LinearKernels {
  /// state += b^T c
  void (*add_to_state)(Rows<const T> b, Rows<const T> c, Rows<T> state);
  /// sum = a state
  void (*take_state)(Rows<const T> a, Rows<const T> state, Rows<T> sum);
  /// sum += (a b^T, where it is kept) c. A row of c that is not kept may hold anything.
  void (*add_direct)(const DirectBlock<T>& block, Rows<T> sum);
  /// out = scale sum
  void (*store_scaled)(Rows<const T> sum, T scale, Rows<T> out);
  index lanes;
};

template <class T>
LinearKernels<T> linear_kernels();

}  // namespace fovea::detail
