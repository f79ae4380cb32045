// SPDX-License-Identifier: Apache-2.0
// A chunk of keys of the backward: what it works on, and the kernels that compute it.
#pragma once

#include <algorithm>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/base/types.h"
#include "fovea/simd/prefetch.h"

namespace fovea::detail {

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

template <class T>
struct BackwardCall : KernelCall<T> {
  const AttentionSaved<T>& saved;
  const AttentionGradients<T>& gradients;
  bool rounded_o = false;  ///< whether saved.o was rounded to bfloat16
};

/// Queries [begin, begin + rows) of one sequence, for every head of a group. Each tile of keys, or
/// each set of tiles that run together, reads them again. In rows of whole vectors: q [heads][rows]
/// [D rounded up], scaled, since the forward's bits need the forward's factors; d_o [heads][rows]
/// [Dv rounded up]. As pairs, unscaled, twice: along the width, [heads][rows][pairs of D], and
/// along the queries, [heads][rows / 2][D rounded up]; d_o likewise.
template <class T>
struct PackedQueries {
  index first_head;
  index begin;
  index rows;  ///< whole operands
  Operand<T>* q;
  Operand<T>* d_o;
  Operand<T>* q_down;  ///< along the queries; q itself unless they are pairs
  Operand<T>* d_o_down;

  index slot(index head, index query) const { return (head - first_head) * rows + query - begin; }
};

/// How many operands a packed query takes, in each of the four.
template <class T>
struct PackedWidths {
  index q, d_o;            ///< of a row
  index q_down, d_o_down;  ///< of a row of operands along the queries; 0: there are none

  explicit PackedWidths(const Widths& widths)
      : q(kReadsPairs<T> ? operands_of<T>(widths.D) : widths.Dp),
        d_o(kReadsPairs<T> ? operands_of<T>(widths.Dv) : widths.Dvp),
        q_down(kReadsPairs<T> ? widths.Dp : 0),
        d_o_down(kReadsPairs<T> ? widths.Dvp : 0) {}
  /// The values of `rows` queries, which are whole operands.
  index values(index rows) const {
    return rows * (q + d_o) + operands_of<T>(rows) * (q_down + d_o_down);
  }
};

/// The numbers of each query that the tiles of a head read.
template <class W>
struct QueryNumbers {
  W* delta = nullptr;  ///< sum over columns of o * do, less d_lse
  /// Copied from lse and lse_low, for every tile of keys reads them again. 0 in an empty row, all
  /// of whose scores are masked.
  RowLse<W>* lse = nullptr;

  QueryNumbers from(index query) const { return {delta + query, lse + query}; }
};

/// Keys [key_begin, key_end) of one sequence and group of heads. It finishes their dk and dv, and
/// adds its part of dq to memory of its own, or, if no other chunk has any, to dq.
template <class T>
struct BackwardChunk {
  const Sequence& sequence;
  index group;
  index first_head, last_head;  ///< query heads of the group: [first, last)
  index key_begin, key_end;
  index query_begin, query_end;   ///< queries that keep any of the keys, under any of the heads
  PackedQueries<T> packed;        ///< covers [query_begin, query_end)
  QueryNumbers<Wide<T>> numbers;  ///< [heads][T']
  QueryGradient<Wide<T>> dq;  ///< [heads][query_end - query_begin][D rounded up], 0 at the start
  double* sums;               ///< [heads][sums_size] gradients of the bias and value parts
  index sums_size;
  Prefetch* prefetch = nullptr;  ///< of the thread that computes it, if it asks for rows

  /// The numbers of the queries of one head.
  QueryNumbers<Wide<T>> numbers_of(index head) const {
    return numbers.from((head - first_head) * sequence.queries);
  }
  double* sums_of(index head) const { return sums + (head - first_head) * sums_size; }
};

struct PackRange {
  index head, begin, end;
};

/// The functions of one instruction set.
template <class T>
struct BackwardKernels {
  void (*run_chunk)(const BackwardCall<T>&, const BackwardChunk<T>&);
  /// dots[r] = a[r] . b[r]
  void (*row_dots)(Rows<const T> a, Rows<const T> b, Wide<T>* dots);
  /// Fills the rows of queries [begin, end) of one head.
  void (*pack_queries)(const BackwardCall<T>&, const Sequence&, const PackedQueries<T>&,
                       const PackRange&);
  /// Rounds sums of dq to the rows that are asked for; only for pairs.
  void (*round_rows)(Rows<const Wide<T>>, Wide<T> factor, Rows<T>) = nullptr;
};
template <class T>
BackwardKernels<T> backward_kernels();

}  // namespace fovea::detail
