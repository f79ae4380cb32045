// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/call.h"

#include <algorithm>
#include <limits>

namespace fovea::detail {

namespace {

enum class RowsOf { kQueries, kKeys };

// Calls f(batch, row) for every row below `length` that no sequence covers. Sequences are in
// ascending order.
template <class F>
void for_each_gap(const std::vector<Sequence>& sequences, RowsOf which, index batch, index length,
                  F&& f) {
  auto next = sequences.begin();
  for (index b = 0; b < batch; ++b) {
    index row = 0;
    for (; next != sequences.end() && next->batch == b; ++next) {
      const bool of_queries = which == RowsOf::kQueries;
      for (const index begin = of_queries ? next->query_row : next->key_row; row < begin; ++row) {
        f(b, row);
      }
      row += of_queries ? next->queries : next->keys;
    }
    for (; row < length; ++row) f(b, row);
  }
}

template <class T>
void clear_rows(const std::vector<Sequence>& sequences, RowsOf which, const View<T>& view) {
  if (view.empty()) return;
  for_each_gap(sequences, which, view.batch, view.length, [&](index b, index row) {
    for (index h = 0; h < view.heads; ++h) std::fill_n(view.row(b, row, h), view.width, T{});
  });
}

template <class T>
void clear_rows(const std::vector<Sequence>& sequences, const RowView<T>& view, T value) {
  if (view.empty()) return;
  for_each_gap(sequences, RowsOf::kQueries, view.batch, view.length, [&](index b, index row) {
    for (index h = 0; h < view.heads; ++h) view.at(b, h, row) = value;
  });
}

}  // namespace

template <class T>
std::vector<Sequence> make_sequences(const Attention<Wide<T>>& attention,
                                     const AttentionInputs<T>& in) {
  const Packed& packed = attention.packed;
  const bool is = !packed.empty();
  std::vector<Sequence> sequences(
      static_cast<std::size_t>(is ? packed.query_offsets.size - 1 : in.q.batch));
  index n = 0;
  for (Sequence& sequence : sequences) {
    sequence.number = n;
    if (is) {
      sequence.query_row = packed.query_offsets[n];
      sequence.key_row = packed.key_offsets[n];
      sequence.queries = packed.query_offsets[n + 1] - packed.query_offsets[n];
      sequence.keys = packed.key_offsets[n + 1] - packed.key_offsets[n];
    } else {
      sequence.batch = n;
      sequence.queries = in.q.length;
      sequence.keys = in.k.length;
    }
    attention.mask.limit(sequence);
    ++n;
  }
  return sequences;
}

template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences, const AttentionOutputs<T>& out) {
  clear_rows(sequences, RowsOf::kQueries, out.o);
  clear_rows(sequences, out.lse, -std::numeric_limits<Wide<T>>::infinity());
  clear_rows(sequences, out.lse_low, Wide<T>{0});
}

template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences,
                     const AttentionGradients<T>& gradients) {
  clear_rows(sequences, RowsOf::kQueries, gradients.dq);
  clear_rows(sequences, RowsOf::kKeys, gradients.dk);
  clear_rows(sequences, RowsOf::kKeys, gradients.dv);
}

#define FOVEA_INSTANTIATE(T)                                                               \
  template std::vector<Sequence> make_sequences(const Attention<Wide<T>>&,                 \
                                                const AttentionInputs<T>&);                \
  template void clear_uncovered(const std::vector<Sequence>&, const AttentionOutputs<T>&); \
  template void clear_uncovered(const std::vector<Sequence>&, const AttentionGradients<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(BFloat16)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
