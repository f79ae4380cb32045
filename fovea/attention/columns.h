// SPDX-License-Identifier: Apache-2.0
// The second pass of the forward, for observers that see columns: the weights that each key
// receives, once every row is complete.
#pragma once

#include <vector>

#include "fovea/attention/kernel.h"
#include "fovea/base/memory.h"

namespace fovea {

/// Largest score of every row, and what its softmax divides by, as the first pass leaves them.
template <class T>
struct RowSums {
  RowView<T> maximum, total;  ///< [B, H, T]
};

template <class T>
bool sees_columns(const Observe<T>& observe);

/// Bytes that the call keeps between the passes; 0 if there is no second one.
template <class T>
double row_sums_bytes(const Attention<T>& attention, const AttentionInputs<T>& in);

template <class T>
RowSums<T> allocate_row_sums(const AttentionInputs<T>& in, Scratch& scratch);

/// An observer that keeps them: the first pass needs it for the second.
template <class T>
Observe<T> keep_row_sums(const RowSums<T>& sums);

/// Tells the observers of the call every column. Keys are cut into chunks that one thread each
/// sums, queries ascending: no order depends on threads.
template <class T>
void observe_columns(const Context& ctx, const KernelCall<T>& call,
                     const std::vector<Sequence>& sequences, const RowSums<T>& sums);

}  // namespace fovea
