// SPDX-License-Identifier: Apache-2.0
// The definition of attention: plain loops over one score after another. Every fused kernel is
// tested against it, in double; in float it is "the plain implementation" that error bounds are
// derived from.
#pragma once

#include "fovea/attention/attention.h"

namespace fovea {

/// As attention_forward, by the definition. T is double, or float for a plain float
/// result.
template <class T>
void attention_reference_forward(const Attention<T>& attention, const AttentionInputs<T>& in,
                                 const AttentionOutputs<T>& out);

/// The definition for rows of bfloat16: plain float32 that rounds where the kernels of bfloat16 do.
/// These are the weights of v and the gradients of scores before products, and o, dq, dk and dv.
void attention_reference_forward(const Attention<float>& attention,
                                 const AttentionInputs<BFloat16>& in,
                                 const AttentionOutputs<BFloat16>& out);
void attention_reference_backward(const Attention<float>& attention,
                                  const AttentionInputs<BFloat16>& in,
                                  const AttentionSaved<BFloat16>& saved,
                                  const AttentionGradients<BFloat16>& gradients);

/// As attention_backward, by the definition. Weights are recomputed from the scores: saved.lse is
/// not read.
template <class T>
void attention_reference_backward(const Attention<T>& attention, const AttentionInputs<T>& in,
                                  const AttentionSaved<T>& saved,
                                  const AttentionGradients<T>& gradients);

}  // namespace fovea
