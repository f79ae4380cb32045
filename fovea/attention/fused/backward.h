// SPDX-License-Identifier: Apache-2.0
// The fused backward: one pass of five products, by chunks of keys (Dao et al. 2022, algorithm 4).
#pragma once

#include "fovea/attention/fused/scratch_sizes.h"

namespace fovea::detail {

/// Computes the gradients of every row of the sequences, and those of the parts. `rounded_o`:
/// whether saved.o was rounded to bfloat16.
template <class T>
void fused_backward(const Context& ctx, const LoweredCall<T>& call, const AttentionSaved<T>& saved,
                    const AttentionGradients<T>& gradients, bool rounded_o);

/// Bytes of scratch that it takes, if all gradients are asked for.
template <class T>
ThreadScratch backward_scratch(const Context& ctx, const LoweredCall<T>& call);

}  // namespace fovea::detail
