// SPDX-License-Identifier: Apache-2.0
// The fused forward: a tile of 64 queries meets its keys in blocks of 128, with an online softmax.
#pragma once

#include "fovea/attention/fused/scratch_sizes.h"

namespace fovea::detail {

/// Computes every row of the sequences of the call.
template <class T>
void fused_forward(const Context& ctx, const LoweredCall<T>& call, const AttentionOutputs<T>& out);

/// Bytes of scratch that it takes, if no weights are asked for.
template <class T>
ThreadScratch forward_scratch(const Context& ctx, const LoweredCall<T>& call);

}  // namespace fovea::detail
