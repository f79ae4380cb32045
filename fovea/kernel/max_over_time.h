// SPDX-License-Identifier: Apache-2.0
// The maximum of each column over the rows of each sequence (Collobert et al. 2011, "Natural
// language processing (almost) from scratch", section 3.2.2; TextCNN: Kim 2014).
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

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

}  // namespace fovea
