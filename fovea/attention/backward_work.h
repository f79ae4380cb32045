// SPDX-License-Identifier: Apache-2.0
// How the backward is cut into chunks of keys, and what one chunk works on.
#pragma once

#include <algorithm>

#include "fovea/attention/kernel.h"
#include "fovea/attention/room.h"
#include "fovea/attention/tile_parts.h"
#include "fovea/simd/prefetch.h"

namespace fovea {

template <class T>
struct BackwardCall : KernelCall<T> {
  const AttentionSaved<T>& saved;
  const AttentionGradients<T>& gradients;
};

/// Queries [begin, begin + rows) of one sequence, for every head of a group, in rows of whole
/// vectors: read again for each tile of keys.
template <class T>
struct PackedQueries {
  index first_head;
  index begin;
  index rows;
  T* q;    ///< [heads][rows][D rounded up], scaled: the forward's bits need the forward's factors
  T* d_o;  ///< [heads][rows][Dv rounded up]

  index slot(index head, index query) const { return (head - first_head) * rows + query - begin; }
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
  PackedQueries<T> packed;       ///< covers [query_begin, query_end)
  const T* delta;                ///< [heads][T'] sum over columns of o * do
  T* dq;                         ///< [heads][query_end - query_begin][D rounded up], 0 at the start
  double* sums;                  ///< [heads][sums_size] gradients of the bias and value parts
  index sums_size;
  Prefetch* ahead = nullptr;  ///< of the thread that computes it, if it asks for rows

  const T* delta_of(index head) const { return delta + (head - first_head) * sequence.queries; }
  /// Number of a query among those of all heads of the chunk.
  index query_slot(index head, index query) const {
    return (head - first_head) * (query_end - query_begin) + query - query_begin;
  }
  T* dq_row(index head, index query, index width) const {
    return dq + query_slot(head, query) * width;
  }
  double* sums_of(index head) const { return sums + (head - first_head) * sums_size; }
};

/// Adds the part of a chunk to rows `rows` of dq; the first chunk stores them.
template <class T>
void sum_dq(const View<T>& dq, const BackwardChunk<T>& chunk, index width, Span rows) {
  if (dq.empty()) return;
  const bool first = chunk.key_begin == 0;
  for (index h = chunk.first_head; h < chunk.last_head; ++h) {
    for (index i = rows.begin; i < rows.end; ++i) {
      const bool covered = i >= chunk.query_begin && i < chunk.query_end;
      T* const sum = dq.row(chunk.sequence.batch, chunk.sequence.query_row + i, h);
      const T* const part = covered ? chunk.dq_row(h, i, width) : nullptr;
      if (first && covered) {
        std::copy_n(part, dq.width, sum);
      } else if (first) {
        std::fill_n(sum, dq.width, T{0});
      } else if (covered) {
        for (index c = 0; c < dq.width; ++c) sum[c] += part[c];
      }
    }
  }
}

struct PackRange {
  index head, begin, end;
};

/// The functions of one instruction set.
template <class T>
struct BackwardKernels {
  void (*run_chunk)(const BackwardCall<T>&, const BackwardChunk<T>&);
  /// dots[r] = a[r] . b[r]
  void (*row_dots)(Rows<const T> a, Rows<const T> b, T* dots);
  /// Fills the rows of queries [begin, end) of one head.
  void (*pack_queries)(const BackwardCall<T>&, const Sequence&, const PackedQueries<T>&,
                       const PackRange&);
  index lanes;
};
/// Bytes of scratch that the backward of a call takes.
template <class T>
ThreadScratch backward_scratch(const Context& ctx, const Attention<T>& attention,
                               const AttentionInputs<T>& in);

template <class T>
BackwardKernels<T> backward_kernels();
template <>
BackwardKernels<float> backward_kernels();
template <>
BackwardKernels<double> backward_kernels();

}  // namespace fovea
