// SPDX-License-Identifier: Apache-2.0
// Calls with rows of bfloat16: which kernel computes them, and the way through float32.
#pragma once

#include "fovea/attention/attention.h"

namespace fovea::detail {

/// Whether the fused kernels compute the call from pairs of bfloat16. Otherwise it is converted.
bool forward_reads_pairs(const Attention<float>& attention);
bool backward_reads_pairs(const Attention<float>& attention);

/// Views of the same shapes, for functions that do not read them.
AttentionInputs<float> float32_shapes(const AttentionInputs<BFloat16>& in);

/// Convert all rows, compute the call in float32, and round its results. The call is checked.
void forward_in_float32(const Context& ctx, const Attention<float>& attention,
                        const AttentionInputs<BFloat16>& in, const AttentionOutputs<BFloat16>& out);
void backward_in_float32(const Context& ctx, const Attention<float>& attention,
                         const AttentionInputs<BFloat16>& in, const AttentionSaved<BFloat16>& saved,
                         const AttentionGradients<BFloat16>& gradients);
/// The memory that they take for rows, in the backward.
double converted_bytes(const AttentionInputs<BFloat16>& in);

}  // namespace fovea::detail
