// SPDX-License-Identifier: Apache-2.0
// How the backward is cut into chunks of keys, and what one chunk works on.
#pragma once

#include "fovea/attention/kernel.h"

namespace fovea {

template <class T>
struct BackwardCall : KernelCall<T> {
  const AttentionSaved<T>& saved;
  const AttentionGradients<T>& gradients;
};

/// Keys [key_begin, key_end) of one sequence and group of heads. It finishes their dk and dv, and
/// adds its part of dq to memory of its own.
template <class T>
struct BackwardChunk {
  const Sequence& sequence;
  index group;
  index first_head, last_head;  ///< query heads of the group: [first, last)
  index key_begin, key_end;
  index query_begin, query_end;  ///< queries that keep any of the keys, under any of the heads
  const T* delta;                ///< [heads][T'] sum over columns of o * do
  T* dq;                         ///< [heads][query_end - query_begin][D rounded up], 0 at the start
  double* sums;                  ///< [heads][sums_size] gradients of the bias parts
  index sums_size;

  const T* delta_of(index head) const { return delta + (head - first_head) * sequence.queries; }
  T* dq_row(index head, index query, index width) const {
    return dq + ((head - first_head) * (query_end - query_begin) + query - query_begin) * width;
  }
  double* sums_of(index head) const { return sums + (head - first_head) * sums_size; }
};

/// The functions of one instruction set.
template <class T>
struct BackwardKernels {
  void (*run_chunk)(const BackwardCall<T>&, const BackwardChunk<T>&);
  /// dots[r] = a[r] . b[r]
  void (*row_dots)(Rows<const T> a, Rows<const T> b, T* dots);
  index lanes;
};
template <class T>
BackwardKernels<T> backward_kernels();
template <>
BackwardKernels<float> backward_kernels();
template <>
BackwardKernels<double> backward_kernels();

}  // namespace fovea
