// SPDX-License-Identifier: Apache-2.0
// The second pass of the forward, for observers of columns: the weights that each key receives,
// after every row is complete.
#pragma once

#include <vector>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

/// Largest score of every row, and the denominator of its softmax, from the first pass.
template <class T>
struct RowSums {
  RowView<T> maximum, total;  ///< [B, H, T]
};

/// Bytes that the call stores between the passes; 0 if there is no second one.
template <class T>
double row_sums_bytes(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in);

template <class T>
RowSums<Wide<T>> allocate_row_sums(const AttentionInputs<T>& in, Scratch& scratch);

/// An observer that stores them in the first pass, for the second.
template <class T>
Observe<T> keep_row_sums(const RowSums<T>& sums);

/// Bytes that each thread takes in the second pass; 0 likewise.
template <class T>
double column_bytes(const KernelCall<T>& call, const std::vector<Sequence>& sequences);

/// Gives every column to the observers of the call. Each chunk of keys is summed by one thread,
/// with queries ascending: no order depends on the number of threads.
template <class T>
void observe_columns(const Context& ctx, const KernelCall<T>& call,
                     const std::vector<Sequence>& sequences, const RowSums<Wide<T>>& sums);

}  // namespace fovea::detail
