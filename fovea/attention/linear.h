// SPDX-License-Identifier: Apache-2.0
// Weights that are the scores themselves, in another order of the sums: o = q (k^T v) takes
// O(n D Dv) instead of O(n^2 (D + Dv)) (Katharopoulos et al. 2020, sections 3.2 and 3.3, with the
// identity as the feature map).
//
// Every result has the same form, out_x = scale * sum over y of (a_x . b_y) c_y:
//
//   o   a = q,  b = k,  c = v       over the keys that x keeps
//   dq  a = dO, b = v,  c = k       the same
//   dk  a = v,  b = dO, c = q       over the queries that keep x
//   dv  a = k,  b = q,  c = dO      the same
#pragma once

#include "fovea/attention/attention.h"

namespace fovea {

/// May the sums of the call be reordered? Without a norm, bias, value part and dropout, if the mask
/// is causal or cuts lengths alone. The score must be a product of rows, as they are or made.
template <class T>
bool is_linear(const Attention<T>& attention);
/// And does nobody want to see the weights?
template <class T>
bool is_linear(const Attention<T>& attention, const AttentionOutputs<T>& out);

/// For calls that were checked.
template <class T>
void linear_forward(const Context& ctx, const Attention<T>& attention, const AttentionInputs<T>& in,
                    const AttentionOutputs<T>& out);
template <class T>
void linear_backward(const Context& ctx, const Attention<T>& attention,
                     const AttentionInputs<T>& in, View<const T> d_o,
                     const AttentionGradients<T>& gradients);

/// Two for each multiplication with its addition.
struct LinearFlops {
  double forward, backward;
};
template <class T>
LinearFlops linear_flops(const Context& ctx, const Attention<T>& attention,
                         const AttentionInputs<T>& in);
/// Bytes beyond the tensors.
template <class T>
double linear_scratch_bytes(const Context& ctx, const Attention<T>& attention,
                            const AttentionInputs<T>& in);

}  // namespace fovea
