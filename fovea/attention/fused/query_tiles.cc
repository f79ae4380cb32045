// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/query_tiles.h"

#include <algorithm>
#include <limits>

#include "fovea/attention/checks.h"
#include "fovea/attention/fused/columns.h"
#include "fovea/attention/fused/prefetch.h"
#include "fovea/attention/linear/linear.h"
#include "fovea/attention/overlap.h"
#include "fovea/attention/score/made_rows.h"
#include "fovea/attention/score/pair_score.h"

namespace fovea {

namespace {

// About ten microseconds of one core.
constexpr double kGroupFlops = 1e6;
// Tiles of one item reuse the keys in the cache. Items are made larger as long as each thread still
// has this many of them.
constexpr index kItemsOfThread = 8;

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
    for (index h = 0; h < view.heads; ++h) std::fill_n(view.row(b, row, h), view.width, T{0});
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

QueryTiles::QueryTiles(const std::vector<Sequence>& sequences, index heads, double tile_flops,
                       int threads)
    : sequences_(sequences) {
  for (const Sequence& sequence : sequences) {
    first_.push_back(total_);
    total_ += (sequence.queries + kLaneTile - 1) / kLaneTile * heads;
  }
  const auto worthwhile = static_cast<index>(kGroupFlops / std::max(tile_flops, 1.0));
  const index shared = total_ / (kItemsOfThread * threads);
  group_ = std::max(std::clamp<index>(shared, 1, kMostTilesTogether), worthwhile);
}

QueryTiles::Place QueryTiles::find(index n) const {
  // The last sequence that starts at or before n; empty ones share their start with the next.
  const auto after = std::upper_bound(first_.begin(), first_.end(), n);
  const auto which = static_cast<std::size_t>(after - first_.begin() - 1);
  const Sequence& sequence = sequences_[which];
  const index tiles = (sequence.queries + kLaneTile - 1) / kLaneTile;
  const index within = n - first_[which];
  return {&sequence, within / tiles, tiles - 1 - within % tiles};
}

QueryRun QueryTiles::run_at(index n, index end) const {
  const Place place = find(n);
  const index tiles = std::min(end - n, place.tile + 1);
  return {*place.sequence, place.head, (place.tile + 1 - tiles) * kLaneTile,
          std::min((place.tile + 1) * kLaneTile, place.sequence->queries)};
}

template <class T>
double tile_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in) {
  double scores = 0;
  for (const Sequence& sequence : sequences) {
    const auto queries = static_cast<double>(std::min(sequence.queries, kLaneTile));
    scores = std::max(scores, queries * static_cast<double>(sequence.keys));
  }
  return scores * 2.0 * static_cast<double>(in.q.width + in.v.width);
}

template <class T>
double unit_flops(const std::vector<Sequence>& sequences, const AttentionInputs<T>& in) {
  const auto& [q, k, v] = in;
  double scores = 0;
  for (const Sequence& sequence : sequences) {
    scores = std::max(scores,
                      static_cast<double>(sequence.queries) * static_cast<double>(sequence.keys));
  }
  const double heads =
      static_cast<double>(q.heads) / static_cast<double>(std::max<index>(1, k.heads));
  return scores * heads * static_cast<double>(6 * q.width + 4 * v.width);
}

template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences, const AttentionOutputs<T>& out) {
  clear_rows(sequences, RowsOf::kQueries, out.o);
  clear_rows(sequences, out.lse, -std::numeric_limits<T>::infinity());
  clear_rows(sequences, out.lse_low, T{0});
}

template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences,
                     const AttentionGradients<T>& gradients) {
  clear_rows(sequences, RowsOf::kQueries, gradients.dq);
  clear_rows(sequences, RowsOf::kKeys, gradients.dk);
  clear_rows(sequences, RowsOf::kKeys, gradients.dv);
}

template <class T>
void attention_forward(const Context& ctx, const Attention<T>& attention,
                       const AttentionInputs<T>& in, const AttentionOutputs<T>& out) {
  check_attention(attention, in);
  check_outputs(attention, in, out);
  check_overlap(attention, in, out);
  if (has_pair_score(attention)) {
    return attention_forward(ctx, with_pair_score(attention, in.q.width), in, out);
  }
  if (RowMap<T>::needed(attention)) {
    const MappedCall<T> mapped(ctx, attention, in);
    return attention_forward(ctx, mapped.attention(), mapped.in(), out);
  }
  if (is_linear(attention, out)) return linear_forward(ctx, attention, in, out);
  const ForwardKernel<T> run_tiles = forward_kernel<T>();
  const std::vector<Sequence> sequences = make_sequences(attention, in);
  Scratch scratch;
  RowSums<T> sums;
  Observe<T> observers = attention.observe;
  if (!out.weights.empty()) {
    observers = observers + observe::SelectedRows<T>(0, in.q.length, out.weights);
  }
  const bool columns = sees_columns(observers);
  if (columns) {
    sums = allocate_row_sums(in, scratch);
    observers = observers + keep_row_sums(sums);
  }
  KernelCall<T> call(attention, in);
  call.observe = &observers;
  clear_uncovered(sequences, out);
  for (const auto& observer : observers.parts()) observer->clear();
  const QueryTiles tiles(sequences, in.q.heads, tile_flops(sequences, in), ctx.threads());
  for_each_ahead(ctx, tiles.items(), [&](index item, index then) {
    tiles.for_each_run(item, then, [&](const QueryRun& run, const QueryRun* next) {
      run_tiles(call, out, run, next);
    });
  });
  if (columns) observe_columns(ctx, call, sequences, sums);
}

template void attention_forward(const Context&, const Attention<float>&,
                                const AttentionInputs<float>&, const AttentionOutputs<float>&);
template void attention_forward(const Context&, const Attention<double>&,
                                const AttentionInputs<double>&, const AttentionOutputs<double>&);
template double tile_flops(const std::vector<Sequence>&, const AttentionInputs<float>&);
template double tile_flops(const std::vector<Sequence>&, const AttentionInputs<double>&);
template double unit_flops(const std::vector<Sequence>&, const AttentionInputs<float>&);
template double unit_flops(const std::vector<Sequence>&, const AttentionInputs<double>&);
template void clear_uncovered(const std::vector<Sequence>&, const AttentionOutputs<float>&);
template void clear_uncovered(const std::vector<Sequence>&, const AttentionOutputs<double>&);
template void clear_uncovered(const std::vector<Sequence>&, const AttentionGradients<float>&);
template void clear_uncovered(const std::vector<Sequence>&, const AttentionGradients<double>&);

}  // namespace fovea
