// SPDX-License-Identifier: Apache-2.0
// The parts of the backward that do not depend on each other, and which of them may run at once.
// dq of the backward: the sum over chunks of keys, in ascending order.
#pragma once

#include <algorithm>
#include <vector>

#include "fovea/attention/fused/backward_chunk.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

/// One sequence and group of heads.
struct BackwardUnit {
  const Sequence* sequence;
  index group;
  index first_head, last_head;  ///< query heads of the group: [first, last)
  index first_sums = 0;         ///< number of its first table of sums
  bool packed_together = true;  ///< queries are packed once, not by each chunk for itself

  index heads() const { return last_head - first_head; }
  /// Without keys there is one chunk too: it clears dq.
  index chunks() const {
    const index size = key_chunk(sequence->keys);
    return std::max<index>(1, (sequence->keys + size - 1) / size);
  }
};

struct BackwardUnits {
  std::vector<BackwardUnit> all;
  /// Units that share no entry of a gradient may run at once. Waves run one after another.
  std::vector<Span> waves;
};

/// For each head, units ascend with their sequences.
BackwardUnits make_units(const std::vector<Sequence>& sequences, index H, index G,
                         const SharedGradient& shared);

/// The gradients that any part of the bias shares between sequences or heads.
template <class T>
SharedGradient shared_gradient(const Bias<T>& bias) {
  SharedGradient all;
  for (const auto& part : bias.parts()) {
    const SharedGradient shared = part->shared_gradient();
    all.batch = all.batch || shared.batch;
    all.heads = all.heads || shared.heads;
  }
  return all;
}

/// Chunks are added up in dq itself; if dq is rounded at the end, in room for it.
template <class T>
class DqSums {
 public:
  using W = Wide<T>;

  DqSums(const BackwardCall<T>& call, const Widths& widths) : call_(call), widths_(widths) {}

  /// Values that the rows of some queries take.
  index values(const BackwardUnit& unit, index rows) const {
    return unit.heads() * rows * widths_.Dp;
  }
  /// Values that room_for() allocates.
  index room(const BackwardUnit& unit) const {
    return kReadsPairs<T> ? values(unit, unit.sequence->queries) : 0;
  }
  /// A single chunk of keys sums dq in its final place, if the rows there are whole vectors.
  bool may_sum_in_place(const BackwardUnit& unit) const {
    return unit.chunks() == 1 && (kReadsPairs<T> || call_.in.q.width == widths_.Dp);
  }

  QueryGradient<W> room_for(const BackwardUnit& unit, Scratch& scratch) const;
  /// Where a chunk sums up its part.
  void place(const BackwardUnit& unit, const QueryGradient<W>& sums, BackwardChunk<T>& chunk,
             Scratch& scratch) const;
  /// Adds the part of a chunk to rows `rows`; the first chunk stores them all.
  void add(const QueryGradient<W>& sums, const BackwardChunk<T>& chunk, Span rows) const;
  /// Rounds the rows, if they are not dq itself.
  void store(const BackwardUnit& unit, const QueryGradient<W>& sums, Span rows) const;

 private:
  const BackwardCall<T>& call_;
  const Widths widths_;
  const BackwardKernels<T> kernels_ = backward_kernels<T>();
};

template <class T>
QueryGradient<Wide<T>> DqSums<T>::room_for(const BackwardUnit& unit, Scratch& scratch) const {
  const View<T>& dq = call_.gradients.dq;
  const Sequence& sequence = *unit.sequence;
  if (dq.empty()) return {};
  if constexpr (kReadsPairs<T>) {
    return {scratch.allocate<W>(room(unit)), unit.first_head, 0, sequence.queries * widths_.Dp,
            widths_.Dp};
  } else {
    return {dq.row(sequence.batch, sequence.query_row, unit.first_head), unit.first_head, 0,
            dq.head_stride, dq.length_stride};
  }
}

template <class T>
void DqSums<T>::place(const BackwardUnit& unit, const QueryGradient<W>& sums,
                      BackwardChunk<T>& chunk, Scratch& scratch) const {
  const index rows = chunk.query_end - chunk.query_begin;
  chunk.dq = {nullptr, unit.first_head, chunk.query_begin, rows * widths_.Dp, widths_.Dp};
  if (may_sum_in_place(unit) && sums.data != nullptr) {
    chunk.dq.data = sums.row(unit.first_head, chunk.query_begin);
    chunk.dq.head_stride = sums.head_stride;
    chunk.dq.row_stride = sums.row_stride;
  } else {
    chunk.dq.data = scratch.allocate<W>(values(unit, rows));
  }
}

template <class T>
void DqSums<T>::add(const QueryGradient<W>& sums, const BackwardChunk<T>& chunk, Span rows) const {
  if (sums.data == nullptr) return;
  const index width = call_.in.q.width;
  const bool first = chunk.key_begin == 0;
  const Span covered{std::max(rows.begin, chunk.query_begin), std::min(rows.end, chunk.query_end)};
  if (!first) rows = covered;
  for (index h = chunk.first_head; h < chunk.last_head; ++h) {
    for (index i = rows.begin; i < rows.end; ++i) {
      W* const sum = sums.row(h, i);
      if (i < covered.begin || i >= covered.end) {
        std::fill_n(sum, width, W{0});
        continue;
      }
      const W* const part = chunk.dq.row(h, i);
      if (part == sum) continue;  // summed up in place
      for (index c = 0; c < width; ++c) sum[c] = first ? part[c] : sum[c] + part[c];
    }
  }
}

template <class T>
void DqSums<T>::store(const BackwardUnit& unit, const QueryGradient<W>& sums, Span rows) const {
  if constexpr (kReadsPairs<T>) {
    const View<T>& dq = call_.gradients.dq;
    const Sequence& sequence = *unit.sequence;
    if (dq.empty()) return;
    const index count = rows.end - rows.begin;
    for (index h = unit.first_head; h < unit.last_head; ++h) {
      T* const to = dq.row(sequence.batch, sequence.query_row + rows.begin, h);
      kernels_.round_rows({sums.row(h, rows.begin), count, dq.width, sums.row_stride}, 1,
                          {to, count, dq.width, dq.length_stride});
    }
  }
}

}  // namespace fovea::detail
