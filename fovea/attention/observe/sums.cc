// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/observe/sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/observe/sums.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// sums[r] += the terms of the r-th query, key after key. The sums stay in L1.
template <class T, class Term>
HWY_INLINE void AddTerms(const ObservedTile<T>& tile, T* sums, Term&& add_term) {
  constexpr Tag<T> d;
  for (index c = 0; c < tile.site.keys; ++c) {
    const index row = c * tile.weights.stride;
    for (index lane = 0; lane < tile.site.queries; lane += kLanes<T>) {
      const auto weight = hn::Load(d, tile.weights.data + row + lane);
      hn::Store(add_term(c, lane, weight, hn::Load(d, sums + lane)), d, sums + lane);
    }
  }
}

// w (s - m); a weight of 0 adds nothing, whatever its score.
template <class T>
void AddEntropy(const ObservedTile<T>& tile, T* sums) {
  constexpr Tag<T> d;
  AddTerms(tile, sums, [&](index c, index lane, auto weight, auto sum) {
    const auto score = hn::Load(d, tile.scores.data + c * tile.scores.stride + lane);
    const auto below = hn::Sub(score, hn::Load(d, tile.queries.maximum + lane));
    return hn::IfThenElse(hn::Eq(weight, hn::Zero(d)), sum, hn::MulAdd(weight, below, sum));
  });
}

// w |p - j|
template <class T>
void AddDistance(const ObservedTile<T>& tile, T* sums) {
  constexpr Tag<T> d;
  const index ahead = tile.site.sequence.position(tile.site.query) - tile.site.key;
  AddTerms(tile, sums, [&](index c, index lane, auto weight, auto sum) {
    const auto first = hn::Set(d, static_cast<T>(ahead + lane - c));
    return hn::MulAdd(weight, hn::Abs(hn::Add(first, hn::Iota(d, T{0}))), sum);
  });
}

auto AddEntropyKernel() { return PerPrecision{AddEntropy<float>, AddEntropy<double>}; }
auto AddDistanceKernel() { return PerPrecision{AddDistance<float>, AddDistance<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

template <class T>
void RowNumber<T>::clear() const {
  fill(to_, padding_);
}

template <class T>
void RowNumber<T>::check_shape(const AttentionSizes& sizes) const {
  check_rows_written(this->name(), to_, {sizes.B, sizes.H, sizes.T});
}

template <class T>
void RowNumber<T>::name_memory(OverlapCheck& memory) const {
  memory.write(label_, to_);
}

template class RowNumber<float>;
template class RowNumber<double>;

}  // namespace fovea::detail

namespace fovea::observe {

HWY_EXPORT(AddEntropyKernel);
HWY_EXPORT(AddDistanceKernel);

template <class T>
void Entropy<T>::row(const ObservedRow<T>& row) const {
  T entropy = 0;
  for (const T weight : row.weights) entropy -= weight == T{0} ? T{0} : weight * std::log(weight);
  this->at(row.sequence, row.head, row.i) = entropy;
}

// With p = exp(s - m), l the sum of p, and L their divisor (l, plus the sink's part), the entropy
// is (l log L - E) / L, where E is the sum of p (s - m). When m grows by d, each p is multiplied by
// exp(-d), and each s - m decreases by d.
enum EntropyState { kE, kMaximum, kSum };

template <class T>
void Entropy<T>::start(Rows<T> state) const {
  for (index n = 0; n < state.rows; ++n) std::fill_n(state[n], state.columns, T{0});
}

template <class T>
void Entropy<T>::see(const ObservedTile<T>& tile, Rows<T> state) const {
  const auto& now = tile.queries;
  T* const E = state[kE];
  for (index r = 0; r < now.queries; ++r) {
    const T grown = state[kSum][r] == T{0} ? T{0} : now.maximum[r] - state[kMaximum][r];
    E[r] = tile.rescale[r] == T{0} ? T{0} : tile.rescale[r] * (E[r] - state[kSum][r] * grown);
  }
  FOVEA_DISPATCH(AddEntropyKernel)().of<T>()(tile, E);
  std::copy_n(now.maximum, now.queries, state[kMaximum]);
  std::copy_n(now.sum, now.queries, state[kSum]);
}

namespace {

// If the sink is so far above m that L overflows, log L equals sink - m up to rounding.
template <class T>
T entropy_of(const ObservedQueries<T>& queries, index r, T E) {
  const T sum = queries.sum[r], total = queries.total(r);
  if (sum == T{0}) return 0;
  if (std::isfinite(total) || !std::isfinite(sum)) return (sum * std::log(total) - E) / total;
  const T above = queries.norm.sink - queries.maximum[r], part = std::exp(-above);
  return part == T{0} ? T{0} : part * (sum * above - E);
}

}  // namespace

template <class T>
void Entropy<T>::finish(const ObservedQueries<T>& queries, Rows<const T> state) const {
  for (index r = 0; r < queries.queries; ++r) {
    this->at(queries.sequence, queries.head, queries.query + r) =
        entropy_of(queries, r, state[kE][r]);
  }
}

template <class T>
Maximum<T>::Maximum(RowView<T> to)
    : detail::RowNumber<T>(to, -std::numeric_limits<T>::infinity(), "maximum") {}

template <class T>
void Maximum<T>::row(const ObservedRow<T>& row) const {
  T largest = -std::numeric_limits<T>::infinity();
  bool lost = false;
  for (const T score : row.scores) {
    largest = std::max(largest, score);
    lost = lost || std::isnan(score) || score == std::numeric_limits<T>::infinity();
  }
  this->at(row.sequence, row.head, row.i) = lost ? std::numeric_limits<T>::quiet_NaN() : largest;
}

template <class T>
void Maximum<T>::finish(const ObservedQueries<T>& queries, Rows<const T>) const {
  for (index r = 0; r < queries.queries; ++r) {
    const T sum = queries.sum[r];
    T& largest = this->at(queries.sequence, queries.head, queries.query + r);
    largest = queries.maximum[r];
    // A score may equal the lowest number; with softmax the sum is then not 0.
    const bool none = largest == std::numeric_limits<T>::lowest();
    if (none && (!needs_lse(queries.norm.norm) || sum == T{0})) {
      largest = -std::numeric_limits<T>::infinity();
    }
    if (!std::isfinite(sum)) largest = std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T>
void Distance<T>::row(const ObservedRow<T>& row) const {
  T distance = 0;
  for (index j = 0; j < row.weights.size; ++j) {
    distance += row.weights[j] * static_cast<T>(std::abs(row.position() - j));
  }
  this->at(row.sequence, row.head, row.i) = distance;
}

template <class T>
void Distance<T>::start(Rows<T> state) const {
  std::fill_n(state[0], state.columns, T{0});
}

template <class T>
void Distance<T>::see(const ObservedTile<T>& tile, Rows<T> state) const {
  T* const distance = state[0];
  for (index r = 0; r < tile.site.queries; ++r) distance[r] *= tile.rescale[r];
  FOVEA_DISPATCH(AddDistanceKernel)().of<T>()(tile, distance);
}

template <class T>
void Distance<T>::finish(const ObservedQueries<T>& queries, Rows<const T> state) const {
  for (index r = 0; r < queries.queries; ++r) {
    const T sum = queries.sum[r];
    this->at(queries.sequence, queries.head, queries.query + r) =
        sum == T{0} ? T{0} : state[0][r] / queries.total(r);
  }
}

template class Entropy<float>;
template class Entropy<double>;
template class Maximum<float>;
template class Maximum<double>;
template class Distance<float>;
template class Distance<double>;

template <class T>
void ColumnMass<T>::row(const ObservedRow<T>& row) const {
  const Sequence& sequence = row.sequence;
  for (index j = 0; j < row.weights.size; ++j) {
    mass_.at(sequence.batch, row.head, sequence.key_row + j) += row.weights[j];
  }
}

template <class T>
void ColumnMass<T>::clear() const {
  detail::fill(mass_, T{0});
}

template <class T>
void ColumnMass<T>::columns(const ObservedColumns& columns) const {
  const auto& [sequence, head, key, sums] = columns;
  for (index j = 0; j < sums.size; ++j) {
    mass_.at(sequence.batch, head, sequence.key_row + key + j) = static_cast<T>(sums[j]);
  }
}

template <class T>
void ColumnMass<T>::name_memory(OverlapCheck& memory) const {
  memory.write("column_mass", mass_);
}

template <class T>
void ColumnMass<T>::check_shape(const AttentionSizes& sizes) const {
  detail::check_rows_written("column_mass", mass_, {sizes.B, sizes.H, sizes.S}, "S");
}

template class ColumnMass<float>;
template class ColumnMass<double>;

}  // namespace fovea::observe
#endif  // HWY_ONCE
