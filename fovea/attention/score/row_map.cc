// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/row_map.h"

#include <algorithm>
#include <cmath>

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

}  // namespace fovea::detail
