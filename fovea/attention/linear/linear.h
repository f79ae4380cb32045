// SPDX-License-Identifier: Apache-2.0
// Linear attention, for weights that are the scores themselves: o = q (k^T v) takes O(n D Dv)
// instead of O(n^2 (D + Dv)) (Katharopoulos et al. 2020, sections 3.2 and 3.3, with the identity as
// the feature map).
//
// Every result has the same form, out_x = scale * sum over y of (a_x . b_y) c_y:
//
//   o   a = q,  b = k,  c = v       over the keys that x keeps
//   dq  a = dO, b = v,  c = k       the same
//   dk  a = v,  b = dO, c = q       over the queries that keep x
//   dv  a = k,  b = q,  c = dO      the same
#pragma once

#include "fovea/attention/lowered_call.h"

namespace fovea::detail {

/// For calls whose kernel is kLinear.
template <class T>
void linear_forward(const Context& ctx, const LoweredCall<T>& call, const AttentionOutputs<T>& out);
template <class T>
void linear_backward(const Context& ctx, const LoweredCall<T>& call, View<const T> d_o,
                     const AttentionGradients<T>& gradients);

/// A multiplication with its addition counts as two.
struct LinearFlops {
  double forward, backward;
};
template <class T>
LinearFlops linear_flops(const Context& ctx, const LoweredCall<T>& call);
/// Bytes beyond the tensors.
template <class T>
double linear_scratch_bytes(const Context& ctx, const LoweredCall<T>& call);

}  // namespace fovea::detail
