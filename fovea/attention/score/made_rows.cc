// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/made_rows.h"

#include <algorithm>

namespace fovea::detail {

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
RowMap<T> map_of(const Context& ctx, const Score<T>& score, const Rotary& rotary, index D,
                 const std::vector<Sequence>& sequences) {
  const auto [first, last] = positions_of(sequences);
  return {ctx, score, rotary, D, first, last};
}

// Calls f(sequence, i) for row i of each sequence, the rows of all of them divided among the
// threads: sequences may be short. `rows`: of a sequence; `cost`: of a row.
template <class Rows, class F>
void for_each_row(const Context& ctx, const std::vector<Sequence>& sequences, double cost,
                  const Rows& rows, const F& f) {
  std::vector<index> first = {0};  // row of each sequence, and their number
  for (const Sequence& sequence : sequences) first.push_back(first.back() + rows(sequence));
  ctx.for_ranges(first.back(), cost, [&](index begin, index end) {
    auto s = std::upper_bound(first.begin(), first.end(), begin) - first.begin() - 1;
    for (index row = begin; row < end; ++row) {
      while (row >= first[static_cast<std::size_t>(s + 1)]) ++s;
      const auto at = static_cast<std::size_t>(s);
      f(sequences[at], row - first[at]);
    }
  });
}

}  // namespace

template <class T>
MadeRows<T>::MadeRows(const Context& ctx, const Score<T>& score, const Rotary& rotary,
                      const QueryKeyRows<const T>& rows, const std::vector<Sequence>& sequences)
    : score_(score),
      in_(rows),
      sequences_(sequences),
      map_(map_of(ctx, score, rotary, rows.q.width, sequences)),
      made_{allocate(rows.q), allocate(rows.k)} {
  for_each_query(ctx, [&](index b, index row, index head, index position) {
    map_.query(in_.q.row(b, row, head), head, position, made_.q.row(b, row, head));
  });
  for_each_key(ctx, [&](index b, index row, index group, index position) {
    map_.key(in_.k.row(b, row, group), position, made_.k.row(b, row, group));
  });
}

template <class T>
View<T> MadeRows<T>::allocate(const View<const T>& of) {
  const index width = made_width(score_, of.width);
  T* const memory =
      scratch_.allocate<T>(std::max<index>(1, of.batch * of.length * of.heads * width));
  return View<T>::contiguous(memory, of.batch, of.length, of.heads, width);
}

template <class T>
double MadeRows<T>::bytes(const Score<T>& score, const Rotary& rotary,
                          const QueryKeyRows<const T>& of, const std::vector<Sequence>& sequences) {
  const auto rows = static_cast<double>(of.q.batch) *
                    static_cast<double>(of.q.length * of.q.heads + of.k.length * of.k.heads);
  const auto [first, last] = positions_of(sequences);
  const double table = static_cast<double>(last - first + 1) *
                       static_cast<double>(RowMap<T>::kept(rotary, of.q.width));
  const index width = made_width(score, of.q.width);
  return (2 * rows * static_cast<double>(width) + table) * sizeof(T);
}

// Calls f(batch row, row, head, position).
template <class T>
template <class F>
void MadeRows<T>::for_each_query(const Context& ctx, F&& f) const {
  const index H = in_.q.heads;
  const double cost = static_cast<double>(8 * H * in_.q.width);
  for_each_row(
      ctx, sequences_, cost, [](const Sequence& sequence) { return sequence.queries; },
      [&](const Sequence& sequence, index i) {
        for (index h = 0; h < H; ++h) {
          f(sequence.batch, sequence.query_row + i, h, sequence.position(i));
        }
      });
}

// Calls f(batch row, row, group, position).
template <class T>
template <class F>
void MadeRows<T>::for_each_key(const Context& ctx, F&& f) const {
  const index G = in_.k.heads;
  const double cost = static_cast<double>(8 * G * in_.k.width);
  for_each_row(
      ctx, sequences_, cost, [](const Sequence& sequence) { return sequence.keys; },
      [&](const Sequence& sequence, index j) {
        for (index g = 0; g < G; ++g) f(sequence.batch, sequence.key_row + j, g, j);
      });
}

template <class T>
QueryKeyRows<T> MadeRows<T>::gradients(const QueryKeyRows<T>& wanted) {
  const auto* const concat = std::get_if<score::Concat<T>>(&score_);
  const bool weights = concat != nullptr && concat->dw.data != nullptr;
  if (!wanted.q.empty() || weights) gradients_.q = allocate(in_.q);
  if (!wanted.k.empty()) gradients_.k = allocate(in_.k);
  return gradients_;
}

template <class T>
void MadeRows<T>::pull(const Context& ctx, const QueryKeyRows<T>& wanted) const {
  if (!wanted.q.empty()) {
    for_each_query(ctx, [&](index b, index row, index head, index position) {
      map_.pull_query(in_.q.row(b, row, head), head, position, gradients_.q.row(b, row, head),
                      wanted.q.row(b, row, head));
    });
  }
  if (!wanted.k.empty()) {
    for_each_key(ctx, [&](index b, index row, index group, index position) {
      map_.pull_key(in_.k.row(b, row, group), position, gradients_.k.row(b, row, group),
                    wanted.k.row(b, row, group));
    });
  }
  if (const auto* concat = std::get_if<score::Concat<T>>(&score_)) {
    if (concat->dw.data != nullptr) pull_weights(ctx, *concat);
  }
}

// Head by head, queries ascending.
template <class T>
void MadeRows<T>::pull_weights(const Context& ctx, const score::Concat<T>& concat) const {
  ctx.for_each(in_.q.heads, [&](index head) {
    std::vector<double> sums(static_cast<std::size_t>(2 * in_.q.width));
    for (const Sequence& sequence : sequences_) {
      for (index i = 0; i < sequence.queries; ++i) {
        const index b = sequence.batch, row = sequence.query_row + i;
        map_.add_weights(in_.q.row(b, row, head), sequence.position(i),
                         gradients_.q.row(b, row, head), sums.data());
      }
    }
    for (index c = 0; c < 2 * in_.q.width; ++c) {
      concat.dw[head][c] = static_cast<T>(sums[static_cast<std::size_t>(c)]);
    }
  });
}

template class MadeRows<float>;
template class MadeRows<double>;

}  // namespace fovea::detail
