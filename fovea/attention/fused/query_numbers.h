// SPDX-License-Identifier: Apache-2.0
// The numbers that the backward computes for each query before its tiles.
#pragma once

#include <limits>

#include "fovea/attention/fused/backward_chunk.h"

namespace fovea::detail {

/// 0 for an empty row, and for norms that have no lse.
template <class T>
RowLse<Wide<T>> lse_of_query(const BackwardCall<T>& call, const Sequence& sequence, index head,
                             index query) {
  using W = Wide<T>;
  const auto& lse = call.saved.lse;
  const auto& lse_low = call.saved.lse_low;
  if (lse.empty()) return {W{0}, W{0}};
  const index row = sequence.query_row + query;
  const W value = lse.at(sequence.batch, head, row);
  if (value == -std::numeric_limits<W>::infinity()) return {W{0}, W{0}};
  return {value, lse_low.empty() ? W{0} : lse_low.at(sequence.batch, head, row)};
}

/// `numbers`: of all queries of the head.
template <class T>
void compute_query_numbers(const BackwardCall<T>& call, const Sequence& sequence, index head,
                           Span queries, const QueryNumbers<Wide<T>>& numbers) {
  const auto rows_of = [&](const View<const T>& view) {
    return Rows<const T>(view.row(sequence.batch, sequence.query_row + queries.begin, head),
                         queries.end - queries.begin, view.width, view.length_stride);
  };
  backward_kernels<T>().row_dots(rows_of(call.saved.o), rows_of(call.saved.d_o),
                                 numbers.delta + queries.begin);
  const RowView<const Wide<T>>& d_lse = call.saved.d_lse;
  for (index i = queries.begin; i < queries.end; ++i) {
    if (!d_lse.empty()) numbers.delta[i] -= d_lse.at(sequence.batch, head, sequence.query_row + i);
    numbers.lse[i] = lse_of_query(call, sequence, head, i);
  }
}

}  // namespace fovea::detail
