// SPDX-License-Identifier: Apache-2.0
// The mean of each column over the rows of each sequence: Keras' GlobalAveragePooling1D.
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

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
