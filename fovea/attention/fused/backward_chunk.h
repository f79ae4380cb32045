// SPDX-License-Identifier: Apache-2.0
// A chunk of keys of the backward: what it works on, and the kernels that compute it.
#pragma once

#include <algorithm>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/simd/prefetch.h"

namespace fovea::detail {

template <class T>
struct BackwardCall : KernelCall<T> {
  const AttentionSaved<T>& saved;
  const AttentionGradients<T>& gradients;
};

/// Queries [begin, begin + rows) of one sequence, for every head of a group, in rows of whole
/// vectors. Each tile of keys, or each set of tiles that run together, reads them again.
template <class T>
struct PackedQueries {
  index first_head;
  index begin;
  index rows;
  T* q;    ///< [heads][rows][D rounded up], scaled: the forward's bits need the forward's factors
  T* d_o;  ///< [heads][rows][Dv rounded up]

  index slot(index head, index query) const { return (head - first_head) * rows + query - begin; }
};

/// Where a chunk of keys sums up its part of dq: rows of whole vectors.
template <class T>
struct QueryGradient {
  T* data = nullptr;
  index first_head = 0, begin = 0;  ///< of the first row
  index head_stride = 0, row_stride = 0;

  T* row(index head, index query) const {
    return data + (head - first_head) * head_stride + (query - begin) * row_stride;
  }
};

/// Keys [key_begin, key_end) of one sequence and group of heads. It finishes their dk and dv, and
/// adds its part of dq to memory of its own, or, if no other chunk has any, to dq.
template <class T>
struct BackwardChunk {
  const Sequence& sequence;
  index group;
  index first_head, last_head;  ///< query heads of the group: [first, last)
  index key_begin, key_end;
  index query_begin, query_end;  ///< queries that keep any of the keys, under any of the heads
  PackedQueries<T> packed;       ///< covers [query_begin, query_end)
  const T* delta;                ///< [heads][T'] sum over columns of o * do, less d_lse
  QueryGradient<T> dq;           ///< [heads][query_end - query_begin][D rounded up], 0 at the start
  double* sums;                  ///< [heads][sums_size] gradients of the bias and value parts
  index sums_size;
  Prefetch* prefetch = nullptr;  ///< of the thread that computes it, if it asks for rows

  const T* delta_of(index head) const { return delta + (head - first_head) * sequence.queries; }
  double* sums_of(index head) const { return sums + (head - first_head) * sums_size; }
};

/// Adds the part of a chunk to rows `rows` of dq; the first chunk stores them all.
template <class T>
void sum_dq(const View<T>& dq, const BackwardChunk<T>& chunk, Span rows) {
  if (dq.empty()) return;
  const bool first = chunk.key_begin == 0;
  const Span covered{std::max(rows.begin, chunk.query_begin), std::min(rows.end, chunk.query_end)};
  if (!first) rows = covered;
  for (index h = chunk.first_head; h < chunk.last_head; ++h) {
    for (index i = rows.begin; i < rows.end; ++i) {
      T* const sum = dq.row(chunk.sequence.batch, chunk.sequence.query_row + i, h);
      if (i < covered.begin || i >= covered.end) {
        std::fill_n(sum, dq.width, T{0});
        continue;
      }
      const T* const part = chunk.dq.row(h, i);
      if (part == sum) continue;  // summed up in place
      for (index c = 0; c < dq.width; ++c) sum[c] = first ? part[c] : sum[c] + part[c];
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
};
template <class T>
BackwardKernels<T> backward_kernels();

}  // namespace fovea::detail
