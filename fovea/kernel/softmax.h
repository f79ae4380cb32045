// SPDX-License-Identifier: Apache-2.0
// Softmax over the last axis, forward and backward.
#pragma once

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// y[n,c] = exp(x[n,c] - max_c x[n,c]) / sum_c exp(x[n,c] - max_c x[n,c]).
///
/// x, y [N,C], rows may be strided; y may be x. -inf gives 0; a row of only -inf is empty and gives
/// a row of 0. A row with NaN or +inf becomes NaN. Throws Error if the shapes disagree.
template <class T>
void softmax_forward(const Context& ctx, InRows<T> x, Rows<T> y);

/// dx[n,c] = y[n,c] (dy[n,c] - sum_k y[n,k] dy[n,k]), where y is what forward wrote.
/// All [N,C]; dx may be dy or y.
template <class T>
void softmax_backward(const Context& ctx, InRows<T> y, InRows<T> dy, Rows<T> dx);

/// y[n] = log sum_c exp(x[n,c]): x [N,C], y [N]; -inf for a row of only -inf. The sum is of T, its
/// logarithm and the maximum are added in double.
template <class T>
void log_sum_exp(const Context& ctx, Rows<const T> x, Vec<double> y);

}  // namespace fovea
