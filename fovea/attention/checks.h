// SPDX-License-Identifier: Apache-2.0
// The checks on entry: they report an invalid call before anything is computed.
#pragma once

#include "fovea/attention/attention.h"

namespace fovea::detail {

/// An upper bound of the number of rows of tiles, over queries and keys, in all heads. A call keeps
/// a few numbers for each.
template <class T>
double rows_of_tiles(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in);
/// Throws Error(kShape or kOptionValue) unless everything fits together.
template <class T>
void check_attention(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in);
template <class T>
void check_outputs(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                   const AttentionOutputs<T>& out);
template <class T>
void check_gradients(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                     const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients);

/// Throw Error(kShape) if an output of the forward (observers included) or of the backward
/// (gradients of parameters included) overlaps any other tensor of the call. Needs checked shapes.
template <class T>
void check_overlap(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                   const AttentionOutputs<T>& out);
template <class T>
void check_overlap(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                   const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients);

}  // namespace fovea::detail
