// SPDX-License-Identifier: Apache-2.0
// The simple recurrent unit (Lei, Zhang, Wang, Dai, Artzi 2018, "Simple Recurrent Units for Highly
// Parallelizable Recurrence", equations 1 to 4; its scaling of x, a matter of initial values, is
// left out). With u_t = W x_t, f^ = W_f x_t, r^ = W_r x_t from one product over all rows, and *
// element by element:
//
//   f_t = sigma(f^_t + v_f c_{t-1} + b_f)        c_t = f_t c_{t-1} + (1 - f_t) u_t
//   r_t = sigma(r^_t + v_r c_{t-1} + b_r)        h_t = r_t c_t + (1 - r_t) x'_t
//
// c = 0 before the first step. The highway x' is x, or where in != H a fourth block of the product.
// Each column of each sequence runs by itself.
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/base/view.h"
#include "fovea/kernel/recurrent.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// The blocks of H columns of SruRun::gates.
constexpr index sru_blocks(index in, index hidden) { return in == hidden ? 3 : 4; }

/// The number of blocks of H rows of W_ih [blocks H, in], of any recurrent layer.
constexpr index input_blocks(RecurrentKind kind, index in, index hidden) {
  return kind == RecurrentKind::kSru ? sru_blocks(in, hidden) : recurrent_gates(kind);
}
/// The number of blocks of H columns of the gates that a recurrent layer keeps for its backward.
constexpr index gate_blocks(RecurrentKind kind, index in, index hidden) {
  return kind == RecurrentKind::kSru ? sru_blocks(in, hidden) : recurrent_blocks(kind);
}

/// One direction of a layer. N rows, S sequences.
template <class T>
struct SruRun {
  TimeDirection direction = TimeDirection::kForward;
  Vec<const std::int32_t> offsets = {};  ///< [S + 1]
  Rows<const T> vectors = {};            ///< [2, H] v_f, v_r
  Vec<const T> bias = {};                ///< [2 H] b_f, b_r; or empty
  /// [N, 3 H or 4 H]. Before: u, f^, r^ (and x'). After: u, f, r (and x'). After backward: the
  /// gradients of what was there before.
  Rows<T> gates = {};
  Rows<const T> highway = {};     ///< [N, H] x; empty: x' is the fourth block of gates
  Rows<T> cells = {};             ///< [N, H] c
  Rows<T> hidden = {};            ///< [N, H] h; not read by backward
  Rows<const T> first_cell = {};  ///< [S, H] before the first step; or empty: 0
};

/// All shapes are checked: Error(kShape).
template <class T>
void sru_forward(const Context& ctx, const SruRun<T>& run);

/// A run after its forward (without first_cell), and its gradients.
template <class T>
struct SruGradient {
  SruRun<T> run;
  Rows<const T> dy;       ///< [N, H]
  Rows<T> dhighway = {};  ///< [N, H] the gradient of run.highway; or empty
  Store store_dhighway = Store::kWrite;
  Rows<T> dvectors = {};  ///< [2, H]
};

/// run.gates become their gradients. dvectors does not depend on the number of threads: sequences
/// are summed in chunks by their number, in ascending order.
template <class T>
void sru_backward(const Context& ctx, const SruGradient<T>& gradient);

}  // namespace fovea

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
