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

#include "fovea/attention/attention.h"

namespace fovea {

/// Can the call be computed so? It must have no norm, bias, value part or dropout; a mask that is
/// causal or cuts lengths; and a dot product of rows, transformed or not, as its score.
template <class T>
bool is_linear(const Attention<T>& attention);
/// The same, and no observer needs the weights.
template <class T>
bool is_linear(const Attention<T>& attention, const AttentionOutputs<T>& out);

/// For checked calls.
template <class T>
void linear_forward(const Context& ctx, const Attention<T>& attention, const AttentionInputs<T>& in,
                    const AttentionOutputs<T>& out);
template <class T>
void linear_backward(const Context& ctx, const Attention<T>& attention,
                     const AttentionInputs<T>& in, View<const T> d_o,
                     const AttentionGradients<T>& gradients);

/// A multiplication with its addition counts as two.
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
