// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/made_rows.h"

#include <algorithm>

#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/sequences.h"

namespace fovea {

namespace {

struct Positions {
  index first = 0, last = 0;
};

// The range of positions of all queries and keys.
Positions positions_of(const std::vector<Sequence>& sequences) {
  Positions all;
  for (const Sequence& sequence : sequences) {
    all.first = std::min(all.first, sequence.position(0));
    all.last = std::max({all.last, sequence.position(sequence.queries - 1), sequence.keys - 1});
  }
  return all;
}

template <class T>
RowMap<T> map_of(const Context& ctx, const Attention<T>& attention, index D,
                 const std::vector<Sequence>& sequences) {
  const auto [first, last] = positions_of(sequences);
  return {ctx, attention, D, first, last};
}

}  // namespace

template <class T>
MappedCall<T>::MappedCall(const Context& ctx, const Attention<T>& attention,
                          const AttentionInputs<T>& in)
    : asked_(attention),
      rows_(in),
      sequences_(make_sequences(attention, in)),
      map_(map_of(ctx, attention, in.q.width, sequences_)),
      dot_(attention),
      made_(in) {
  dot_.score = score::Dot{scale_of(attention.score, in.q.width)};
  dot_.rotary = {};
  const View<T> q = room(in.q), k = room(in.k);
  for_each_query(ctx, [&](index b, index row, index head, index position) {
    map_.query(in.q.row(b, row, head), head, position, q.row(b, row, head));
  });
  for_each_key(ctx, [&](index b, index row, index group, index position) {
    map_.key(in.k.row(b, row, group), position, k.row(b, row, group));
  });
  made_.q = q;
  made_.k = k;
}

template <class T>
View<T> MappedCall<T>::room(const View<const T>& of) {
  const index width = RowMap<T>::width(asked_, rows_.q.width);
  const auto values = static_cast<std::size_t>(of.batch * of.length * of.heads * width);
  memory_.push_back(allocate_aligned(std::max<std::size_t>(1, values) * sizeof(T)));
  return View<T>::contiguous(reinterpret_cast<T*>(memory_.back().get()), of.batch, of.length,
                             of.heads, width);
}

template <class T>
double MappedCall<T>::bytes(const Attention<T>& attention, const AttentionInputs<T>& in) {
  if (!RowMap<T>::needed(attention)) return 0;
  const auto rows = static_cast<double>(in.q.batch) *
                    static_cast<double>(in.q.length * in.q.heads + in.k.length * in.k.heads);
  const auto [first, last] = positions_of(make_sequences(attention, in));
  const double table = static_cast<double>(last - first + 1) *
                       static_cast<double>(RowMap<T>::kept(attention, in.q.width));
  const index width = RowMap<T>::width(attention, in.q.width);
  return (2 * rows * static_cast<double>(width) + table) * sizeof(T);
}

// Calls f(batch row, row, head, position).
template <class T>
template <class F>
void MappedCall<T>::for_each_query(const Context& ctx, F&& f) const {
  const index H = rows_.q.heads;
  const double cost = static_cast<double>(8 * H * rows_.q.width);
  for (const Sequence& sequence : sequences_) {
    ctx.for_ranges(sequence.queries, cost, [&](index begin, index end) {
      for (index i = begin; i < end; ++i) {
        for (index h = 0; h < H; ++h) {
          f(sequence.batch, sequence.query_row + i, h, sequence.position(i));
        }
      }
    });
  }
}

// Calls f(batch row, row, group, position).
template <class T>
template <class F>
void MappedCall<T>::for_each_key(const Context& ctx, F&& f) const {
  const index G = rows_.k.heads;
  const double cost = static_cast<double>(8 * G * rows_.k.width);
  for (const Sequence& sequence : sequences_) {
    ctx.for_ranges(sequence.keys, cost, [&](index begin, index end) {
      for (index j = begin; j < end; ++j) {
        for (index g = 0; g < G; ++g) f(sequence.batch, sequence.key_row + j, g, j);
      }
    });
  }
}

template <class T>
AttentionGradients<T> MappedCall<T>::gradients(const AttentionGradients<T>& wanted) {
  const auto* const concat = std::get_if<score::Concat<T>>(&asked_.score);
  const bool weights = concat != nullptr && concat->dw.data != nullptr;
  if (!wanted.dq.empty() || weights) dq_ = room(rows_.q);
  if (!wanted.dk.empty()) dk_ = room(rows_.k);
  return {dq_, dk_, wanted.dv};
}

template <class T>
void MappedCall<T>::pull(const Context& ctx, const AttentionGradients<T>& wanted) const {
  const auto& [dq, dk, dv] = wanted;
  clear_uncovered(sequences_, AttentionGradients<T>{dq, dk, {}});
  if (!dq.empty()) {
    for_each_query(ctx, [&, &to = dq](index b, index row, index head, index position) {
      map_.pull_query(rows_.q.row(b, row, head), head, position, dq_.row(b, row, head),
                      to.row(b, row, head));
    });
  }
  if (!dk.empty()) {
    for_each_key(ctx, [&, &to = dk](index b, index row, index group, index position) {
      map_.pull_key(rows_.k.row(b, row, group), position, dk_.row(b, row, group),
                    to.row(b, row, group));
    });
  }
  if (const auto* concat = std::get_if<score::Concat<T>>(&asked_.score)) {
    if (concat->dw.data != nullptr) pull_weights(ctx, *concat);
  }
}

// Head by head, queries ascending.
template <class T>
void MappedCall<T>::pull_weights(const Context& ctx, const score::Concat<T>& concat) const {
  ctx.for_each(rows_.q.heads, [&](index head) {
    std::vector<double> sums(static_cast<std::size_t>(2 * rows_.q.width));
    for (const Sequence& sequence : sequences_) {
      for (index i = 0; i < sequence.queries; ++i) {
        const index b = sequence.batch, row = sequence.query_row + i;
        map_.add_weights(rows_.q.row(b, row, head), sequence.position(i), dq_.row(b, row, head),
                         sums.data());
      }
    }
    for (index c = 0; c < 2 * rows_.q.width; ++c) {
      concat.dw[head][c] = static_cast<T>(sums[static_cast<std::size_t>(c)]);
    }
  });
}

template class MappedCall<float>;
template class MappedCall<double>;

}  // namespace fovea
