// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/observe/selected_rows.h"

#include <algorithm>
#include <limits>

#include "fovea/attention/observe/observe.h"
#include "fovea/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/observe/selected_rows.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// The scores of queries [first, first + rows.rows) of a tile.
template <class T>
void CopyScores(const ScoreTile<const T>& scores, index first, Rows<T> rows) {
  if (first == 0) return LanesToRows<T>(scores.data, scores.stride, rows.rows, rows);
  for (index r = 0; r < rows.rows; ++r) {
    for (index c = 0; c < rows.columns; ++c) rows[r][c] = scores.at(first + r, c);
  }
}

// Scores become the weights of softmax.
template <class T>
void WeighRow(T maximum, T total, index n, T* row) {
  ForEachLane<T>(n, [=](auto lanes, index c) {
    const auto score = lanes.Load(row + c);
    const auto masked = hn::Eq(score, lanes.Set(-std::numeric_limits<T>::infinity()));
    const auto power = Exp(lanes.d, hn::Sub(score, lanes.Set(maximum)));
    lanes.Store(hn::IfThenZeroElse(masked, hn::Div(power, lanes.Set(total))), row + c);
  });
}

auto CopyScoresKernel() { return PerPrecision{CopyScores<float>, CopyScores<double>}; }
auto WeighRowKernel() { return PerPrecision{WeighRow<float>, WeighRow<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::observe {

HWY_EXPORT(CopyScoresKernel);
HWY_EXPORT(WeighRowKernel);

template <class T>
void SelectedRows<T>::row(const ObservedRow<T>& row) const {
  const index i = row.sequence.query_row + row.i;
  if (i < begin_ || i >= end_) return;
  std::copy(row.weights.begin(), row.weights.end(),
            weights_.row(row.sequence.batch, row.head, i - begin_) + row.sequence.key_row);
}

template <class T>
void SelectedRows<T>::clear() const {
  detail::fill(weights_, T{0});
}

// The first chosen query of the tile, if there is one.
template <class T>
index SelectedRows<T>::first_chosen(const ObservedQueries<T>& queries) const {
  return std::max<index>(0, begin_ - queries.sequence.query_row - queries.query);
}

// The result rows of the chosen queries, with a column for each key of the sequence.
template <class T>
Rows<T> SelectedRows<T>::chosen(const ObservedQueries<T>& queries) const {
  const Sequence& sequence = queries.sequence;
  const index first = first_chosen(queries), row = sequence.query_row + queries.query;
  const index last = std::min(queries.queries, end_ - row);
  if (first >= last) return {};
  return {weights_.row(sequence.batch, queries.head, row + first - begin_) + sequence.key_row,
          last - first, sequence.keys, weights_.query_stride};
}

// Scores are first stored where the weights belong. The state is the key up to which they are
// stored: a tile of which the mask keeps no key is not observed.
template <class T>
void SelectedRows<T>::start(Rows<T> state) const {
  state[0][0] = detail::state_from_index<T>(0);
}

template <class T>
void SelectedRows<T>::see(const ObservedTile<T>& tile, Rows<T> state) const {
  const Rows<T> rows = chosen(tile.queries);
  if (rows.rows == 0) return;
  const index begin = detail::state_to_index(state[0][0]), key = tile.site.key;
  for (index r = 0; r < rows.rows; ++r) {
    std::fill(rows[r] + begin, rows[r] + key, -std::numeric_limits<T>::infinity());
  }
  const auto copy_scores = FOVEA_DISPATCH(CopyScoresKernel)().of<T>();
  copy_scores(tile.scores, first_chosen(tile.queries),
              rows.columns_slice(key, key + tile.site.keys));
  state[0][0] = detail::state_from_index<T>(key + tile.site.keys);
}

template <class T>
void SelectedRows<T>::finish(const ObservedQueries<T>& queries, Rows<const T> state) const {
  const Rows<T> rows = chosen(queries);
  const index first = first_chosen(queries), end = detail::state_to_index(state[0][0]);
  const auto weigh_row = FOVEA_DISPATCH(WeighRowKernel)().of<T>();
  for (index r = 0; r < rows.rows; ++r) {
    const index i = first + r;
    if (needs_lse(queries.norm.norm)) {
      weigh_row(queries.maximum[i], queries.total(i), end, rows[r]);
    } else {
      for (index c = 0; c < end; ++c) rows[r][c] = queries.weight(i, rows[r][c]);
    }
  }
}

template <class T>
void SelectedRows<T>::name_memory(OverlapCheck& memory) const {
  memory.write("selected_rows", weights_);
}

template <class T>
void SelectedRows<T>::check_shape(const AttentionSizes& sizes) const {
  check(0 <= begin_ && begin_ <= end_ && end_ <= sizes.T,
        "attention: selected rows must be in 0..T={}; they are {}:{}", sizes.T, begin_, end_);
  detail::check_scores_written("selected_rows", weights_,
                               {sizes.B, sizes.H, end_ - begin_, sizes.S});
}

template <class T>
std::string SelectedRows<T>::name() const {
  return fmt::format("rows({}, {})", begin_, end_);
}

template class SelectedRows<float>;
template class SelectedRows<double>;

}  // namespace fovea::observe
#endif  // HWY_ONCE
