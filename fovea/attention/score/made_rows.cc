// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/made_rows.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fovea/base/memory.h"

namespace fovea::detail {

namespace {

template <class T>
double dot(const T* a, const T* b, index n) {
  double sum = 0;
  for (index c = 0; c < n; ++c) sum += static_cast<double>(a[c]) * static_cast<double>(b[c]);
  return sum;
}

template <class T>
bool is_zero(const T* row, index n) {
  return std::all_of(row, row + n, [](T x) { return x == T{0}; });
}

// y = x / |x|, 0 for 0.
template <class T>
void normalise(T* x, index n) {
  const double length = std::sqrt(dot(x, x, n));
  for (index c = 0; c < n; ++c) {
    x[c] = length == 0 ? T{0} : static_cast<T>(static_cast<double>(x[c]) / length);
  }
}

// dx = (dy - (dy.y) y) / |x|, in place.
template <class T>
void pull_normalised(const T* x, index n, T* dy) {
  const double square = dot(x, x, n), length = std::sqrt(square), along = dot(dy, x, n) / square;
  for (index c = 0; c < n; ++c) {
    const double across = static_cast<double>(dy[c]) - along * static_cast<double>(x[c]);
    dy[c] = square == 0 ? T{0} : static_cast<T>(across / length);
  }
}

}  // namespace

template <class T>
RowMap<T>::RowMap(const Context& ctx, const Score<T>& score, const Rotary& rotary, index D,
                  index first, index last)
    : score_(score), D_(D) {
  if (rotary.pairs != RotaryPairs::kNone) {
    table_ = RotaryTable<T>(ctx, rotary, D, first, last);
  }
}

template <class T>
index RowMap<T>::kept(const Rotary& rotary, index D) {
  return rotary.pairs == RotaryPairs::kNone ? 0 : D;  // D / 2 cosines and sines
}

template <class T>
bool RowMap<T>::needed(const Score<T>& score, const Rotary& rotary) {
  return rotary.pairs != RotaryPairs::kNone || std::holds_alternative<score::Cosine>(score) ||
         std::holds_alternative<score::Concat<T>>(score);
}

template <class T>
void RowMap<T>::turn(const T* row, index position, T* to) const {
  if (table_.empty()) {
    std::copy_n(row, D_, to);
  } else {
    table_.turn(row, position, to);
  }
}

template <class T>
void RowMap<T>::query(const T* q, index head, index position, T* to) const {
  if (const auto* of = concat()) {
    Scratch scratch;
    T* const turned = scratch.allocate<T>(D_);
    turn(q, position, turned);
    to[0] = static_cast<T>(dot(of->w[head], turned, D_));
    std::copy_n(of->w[head] + D_, D_, to + 1);
    return;
  }
  turn(q, position, to);
  if (is_cosine()) normalise(to, D_);
}

template <class T>
void RowMap<T>::key(const T* k, index position, T* to) const {
  if (concat() != nullptr) *to++ = T{1};
  turn(k, position, to);
  if (is_cosine()) normalise(to, D_);
}

// The gradient of a row from the gradient of the rotated (and, for cosine, normalised) row.
template <class T>
void RowMap<T>::pull_turned(const T* row, index position, const T* dturned, T* drow) const {
  const bool rotated = !table_.empty();
  if (is_zero(dturned, D_) || !(rotated || is_cosine())) {
    std::copy_n(dturned, D_, drow);
    return;
  }
  if (!is_cosine()) return table_.turn_back(dturned, position, drow);
  Scratch scratch;
  T* const turned = scratch.allocate<T>(D_);
  turn(row, position, turned);
  std::copy_n(dturned, D_, drow);
  pull_normalised(turned, D_, drow);
  if (rotated) table_.turn_back(drow, position, drow);
}

template <class T>
void RowMap<T>::pull_query(const T* q, index head, index position, const T* dto, T* dq) const {
  const auto* const of = concat();
  if (of == nullptr) return pull_turned(q, position, dto, dq);
  for (index c = 0; c < D_; ++c) dq[c] = dto[0] * of->w[head][c];
  if (!table_.empty()) table_.turn_back(dq, position, dq);
}

template <class T>
void RowMap<T>::pull_key(const T* k, index position, const T* dto, T* dk) const {
  pull_turned(k, position, concat() != nullptr ? dto + 1 : dto, dk);
}

template <class T>
void RowMap<T>::add_weights(const T* q, index position, const T* dto, double* sums) const {
  if (dto[0] != T{0}) {
    Scratch scratch;
    T* const turned = scratch.allocate<T>(D_);
    turn(q, position, turned);
    for (index c = 0; c < D_; ++c) {
      sums[c] += static_cast<double>(dto[0]) * static_cast<double>(turned[c]);
    }
  }
  for (index c = 0; c < D_; ++c) sums[D_ + c] += static_cast<double>(dto[1 + c]);
}

template class RowMap<float>;
template class RowMap<double>;

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

// Calls f(row), of the type that a map reads.
template <class T, class F>
void read_row(const T* row, index width, F&& f) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    f(row);
  } else {
    Scratch scratch;
    Wide<T>* const wide = scratch.allocate<Wide<T>>(width);
    std::transform(row, row + width, wide, [](T x) { return widen(x); });
    f(wide);
  }
}

// Calls f(row) to write it.
template <class T, class F>
void write_row(T* row, index width, F&& f) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    f(row);
  } else {
    Scratch scratch;
    Wide<T>* const wide = scratch.allocate<Wide<T>>(width);
    f(wide);
    std::transform(wide, wide + width, row, [](Wide<T> x) { return to_bfloat16(x); });
  }
}

// Calls pull(row, gradient of the made row, gradient of the row to write).
template <class T, class F>
void pull_row(Vec<const T> row, Vec<const T> made, T* to, F&& pull) {
  read_row(row.data, row.size, [&](const Wide<T>* in) {
    read_row(made.data, made.size, [&](const Wide<T>* gradient) {
      write_row(to, row.size, [&](Wide<T>* out) { pull(in, gradient, out); });
    });
  });
}

// The rows of queries, then of keys, of all sequences, one after another.
class AllRows {
 public:
  explicit AllRows(const std::vector<Sequence>& sequences) : sequences_(sequences) {
    for (const Sequence& sequence : sequences) first_.push_back(first_.back() + sequence.queries);
    for (const Sequence& sequence : sequences) first_.push_back(first_.back() + sequence.keys);
  }
  index count() const { return first_.back(); }

  // Calls query(sequence, i) or key(sequence, j) for each of the rows [begin, end).
  template <class Query, class Key>
  void for_each(index begin, index end, const Query& query, const Key& key) const {
    const auto found = std::upper_bound(first_.begin(), first_.end(), begin);
    auto n = static_cast<std::size_t>(found - first_.begin()) - 1;
    for (index row = begin; row < end; ++row) {
      while (row >= first_[n + 1]) ++n;
      if (n < sequences_.size()) {
        query(sequences_[n], row - first_[n]);
      } else {
        key(sequences_[n - sequences_.size()], row - first_[n]);
      }
    }
  }

 private:
  const std::vector<Sequence>& sequences_;
  std::vector<index> first_ = {0};
};

}  // namespace

template <class T>
MadeRows<T>::MadeRows(const Context& ctx, const Score<W>& score, const Rotary& rotary,
                      const QueryKeyRows<const T>& rows, const std::vector<Sequence>& sequences)
    : score_(score),
      in_(rows),
      sequences_(sequences),
      map_(map_of(ctx, score, rotary, rows.q.width, sequences)),
      made_{allocate(rows.q), allocate(rows.k)} {
  for_each_row(
      ctx,
      [&](index b, index row, index head, index position) {
        read_row(in_.q.row(b, row, head), in_.q.width, [&](const W* q) {
          write_row(made_.q.row(b, row, head), made_.q.width,
                    [&](W* to) { map_.query(q, head, position, to); });
        });
      },
      [&](index b, index row, index group, index position) {
        read_row(in_.k.row(b, row, group), in_.k.width, [&](const W* k) {
          write_row(made_.k.row(b, row, group), made_.k.width,
                    [&](W* to) { map_.key(k, position, to); });
        });
      });
}

template <class T>
View<T> MadeRows<T>::allocate(const View<const T>& of) {
  const index width = made_width(score_, of.width);
  const auto values = static_cast<std::size_t>(of.batch * of.length * of.heads * width);
  memory_.push_back(allocate_aligned(std::max<std::size_t>(1, values) * sizeof(T)));
  return View<T>::contiguous(reinterpret_cast<T*>(memory_.back().get()), of.batch, of.length,
                             of.heads, width);
}

template <class T>
double MadeRows<T>::bytes(const Score<W>& score, const Rotary& rotary,
                          const QueryKeyRows<const T>& of, const std::vector<Sequence>& sequences) {
  const auto rows = static_cast<double>(of.q.batch) *
                    static_cast<double>(of.q.length * of.q.heads + of.k.length * of.k.heads);
  const auto [first, last] = positions_of(sequences);
  const double table = static_cast<double>(last - first + 1) *
                       static_cast<double>(RowMap<W>::kept(rotary, of.q.width));
  const index width = made_width(score, of.q.width);
  return 2 * rows * static_cast<double>(width) * sizeof(T) + table * sizeof(W);
}

// Calls query or key(batch row, row, head, position) for each row of each head. The threads share
// all rows at once: a sequence alone may be too short for them.
template <class T>
template <class Query, class Key>
void MadeRows<T>::for_each_row(const Context& ctx, const Query& query, const Key& key) const {
  const index H = in_.q.heads, G = in_.k.heads;
  const AllRows rows(sequences_);
  const double cost = static_cast<double>(8 * H * in_.q.width);
  ctx.for_ranges(rows.count(), cost, [&](index begin, index end) {
    rows.for_each(
        begin, end,
        [&](const Sequence& sequence, index i) {
          for (index h = 0; h < H; ++h) {
            query(sequence.batch, sequence.query_row + i, h, sequence.position(i));
          }
        },
        [&](const Sequence& sequence, index j) {
          for (index g = 0; g < G; ++g) key(sequence.batch, sequence.key_row + j, g, j);
        });
  });
}

template <class T>
QueryKeyRows<T> MadeRows<T>::gradients(const QueryKeyRows<T>& wanted) {
  const auto* const concat = std::get_if<score::Concat<W>>(&score_);
  const bool weights = concat != nullptr && concat->dw.data != nullptr;
  if (!wanted.q.empty() || weights) gradients_.q = allocate(in_.q);
  if (!wanted.k.empty()) gradients_.k = allocate(in_.k);
  return gradients_;
}

template <class T>
void MadeRows<T>::pull(const Context& ctx, const QueryKeyRows<T>& wanted) const {
  const bool queries = !wanted.q.empty(), keys = !wanted.k.empty();
  if (queries || keys) {
    for_each_row(
        ctx,
        [&](index b, index row, index head, index position) {
          if (!queries) return;
          pull_row<T>({in_.q.row(b, row, head), in_.q.width},
                      {gradients_.q.row(b, row, head), gradients_.q.width},
                      wanted.q.row(b, row, head), [&](const W* q, const W* dto, W* dq) {
                        map_.pull_query(q, head, position, dto, dq);
                      });
        },
        [&](index b, index row, index group, index position) {
          if (!keys) return;
          pull_row<T>(
              {in_.k.row(b, row, group), in_.k.width},
              {gradients_.k.row(b, row, group), gradients_.k.width}, wanted.k.row(b, row, group),
              [&](const W* k, const W* dto, W* dk) { map_.pull_key(k, position, dto, dk); });
        });
  }
  if (const auto* concat = std::get_if<score::Concat<W>>(&score_)) {
    if (concat->dw.data != nullptr) pull_weights(ctx, *concat);
  }
}

// Head by head, queries ascending.
template <class T>
void MadeRows<T>::pull_weights(const Context& ctx, const score::Concat<W>& concat) const {
  ctx.for_each(in_.q.heads, [&](index head) {
    std::vector<double> sums(static_cast<std::size_t>(2 * in_.q.width));
    for (const Sequence& sequence : sequences_) {
      for (index i = 0; i < sequence.queries; ++i) {
        const index b = sequence.batch, row = sequence.query_row + i;
        read_row(in_.q.row(b, row, head), in_.q.width, [&](const W* q) {
          read_row(gradients_.q.row(b, row, head), gradients_.q.width, [&](const W* dto) {
            map_.add_weights(q, sequence.position(i), dto, sums.data());
          });
        });
      }
    }
    for (index c = 0; c < 2 * in_.q.width; ++c) {
      concat.dw[head][c] = static_cast<W>(sums[static_cast<std::size_t>(c)]);
    }
  });
}

template class MadeRows<float>;
template class MadeRows<double>;
template class MadeRows<BFloat16>;

}  // namespace fovea::detail
