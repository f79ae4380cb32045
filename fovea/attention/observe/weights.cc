// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/observe/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/observe/observe.h"
#include "fovea/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/observe/weights.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/dropout-inl.h"
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

// Inserts a score into each lane of the state: [K] scores in descending order, above [K] keys. It
// goes after equal scores, whose keys are smaller. A score that is not larger than the last one is
// dropped. The loop always runs to its end: an early exit would be mispredicted.
template <class T>
HWY_INLINE void Insert(Vector<T> score, T key, T* lane, Rows<T> state) {
  constexpr Tag<T> d;
  const index K = state.rows / 2, to_keys = K * state.stride;
  const auto keys = hn::Set(d, key);
  T* place = lane + (K - 1) * state.stride;
  auto here = hn::Load(d, place), key_here = hn::Load(d, place + to_keys);
  auto larger = hn::Gt(score, here);
  for (; place != lane; place -= state.stride) {
    const auto above = hn::Load(d, place - state.stride);
    const auto key_above = hn::Load(d, place - state.stride + to_keys);
    const auto up = hn::Gt(score, above);
    hn::Store(hn::IfThenElse(up, above, hn::IfThenElse(larger, score, here)), d, place);
    hn::Store(hn::IfThenElse(up, key_above, hn::IfThenElse(larger, keys, key_here)), d,
              place + to_keys);
    here = above;
    key_here = key_above;
    larger = up;
  }
  hn::Store(hn::IfThenElse(larger, score, here), d, lane);
  hn::Store(hn::IfThenElse(larger, keys, key_here), d, lane + to_keys);
}

// Nearly every score of a long row is smaller than the K-th so far, so one comparison for a vector
// of queries rejects it.
template <class T>
void TakeLarger(const ObservedTile<T>& tile, Rows<T> state) {
  constexpr Tag<T> d;
  T* const last = state[state.rows / 2 - 1];
  for (index c = 0; c < tile.site.keys; ++c) {
    const T* const scores = tile.scores.data + c * tile.scores.stride;
    for (index lane = 0; lane < state.columns; lane += kLanes<T>) {
      const auto score = hn::Load(d, scores + lane);
      if (hn::AllFalse(d, hn::Gt(score, hn::Load(d, last + lane)))) continue;
      Insert<T>(score, detail::state_from_index<T>(tile.site.key + c), state.data + lane, state);
    }
  }
}

auto TakeLargerKernel() { return PerPrecision{TakeLarger<float>, TakeLarger<double>}; }

// Bit r of word c is 1 if dropout keeps the r-th query and c-th key of the tile.
void KeptBits(const Dropout& dropout, const TileSite& site, std::uint64_t* bits) {
  const DropoutRule rule = dropout_rule(dropout);
  std::fill_n(bits, site.keys, rule.active() ? std::uint64_t{0} : ~std::uint64_t{0});
  if (!rule.active()) return;
  detail::HWY_NAMESPACE::DropoutBits(dropout_stream(dropout, site.sequence, site.head), rule,
                                     site.query, site.key, site.keys, bits);
}

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

HWY_EXPORT(TakeLargerKernel);

template <class T>
void TopK<T>::write(const Sequence& sequence, index head, index i, index n, index key,
                    T weight) const {
  const index row = sequence.query_row + i;
  keys_.at(sequence.batch, head, row, n) = static_cast<std::int32_t>(key);
  weights_.at(sequence.batch, head, row, n) = weight;
}

template <class T>
void TopK<T>::row(const ObservedRow<T>& row) const {
  std::vector<index> order;
  // With an infinite or NaN score the weights of softmax are NaN.
  const bool non_finite = std::any_of(row.scores.begin(), row.scores.end(), [](T score) {
    return std::isnan(score) || score == std::numeric_limits<T>::infinity();
  });
  for (index j = 0; j < row.scores.size && !non_finite; ++j) {
    if (row.scores[j] != -std::numeric_limits<T>::infinity()) order.push_back(j);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](index a, index b) { return row.scores[a] > row.scores[b]; });
  for (index n = 0; n < keys_.keys; ++n) {
    const bool there = n < static_cast<index>(order.size());
    const index key = there ? order[static_cast<std::size_t>(n)] : -1;
    const T none = non_finite ? std::numeric_limits<T>::quiet_NaN() : T{0};
    const T weight = there ? row.weights[key] : none;
    write(row.sequence, row.head, row.i, n, key, weight);
  }
}

template <class T>
void TopK<T>::clear() const {
  detail::fill(keys_, -1);
  detail::fill(weights_, T{0});
}

template <class T>
index TopK<T>::state_size(const Sequence& sequence) const {
  return 2 * std::min(keys_.keys, sequence.keys);
}

template <class T>
void TopK<T>::start(Rows<T> state) const {
  std::fill_n(state.data, state.rows / 2 * state.stride, -std::numeric_limits<T>::infinity());
}

template <class T>
void TopK<T>::see(const ObservedTile<T>& tile, Rows<T> state) const {
  if (state.rows > 0) FOVEA_DISPATCH(TakeLargerKernel)().of<T>()(tile, state);
}

template <class T>
void TopK<T>::finish(const ObservedQueries<T>& queries, Rows<const T> state) const {
  const index found = state.rows / 2;
  for (index r = 0; r < queries.queries; ++r) {
    const bool non_finite = std::isnan(queries.sum[r]);
    for (index n = 0; n < keys_.keys; ++n) {
      const T score = n < found ? state[n][r] : -std::numeric_limits<T>::infinity();
      const bool there = !non_finite && score != -std::numeric_limits<T>::infinity();
      const T weight = non_finite ? queries.sum[r] : queries.weight(r, score);
      write(queries.sequence, queries.head, queries.query + r, n,
            there ? detail::state_to_index(state[found + n][r]) : -1, weight);
    }
  }
}

template <class T>
void TopK<T>::name_memory(OverlapCheck& memory) const {
  memory.write("topk_index", keys_);
  memory.write("topk_weight", weights_);
}

template <class T>
void TopK<T>::check_shape(const AttentionSizes& sizes) const {
  check(sizes.S <= std::numeric_limits<std::int32_t>::max(),
        "attention: topk_index holds numbers of 32 bits; there are {} keys", sizes.S);
  check(keys_.keys >= 0, "attention: topk_index has a negative size: {}", keys_.keys);
  detail::check_scores_written("topk_index", keys_, {sizes.B, sizes.H, sizes.T, keys_.keys});
  detail::check_scores_written("topk_weight", weights_, {sizes.B, sizes.H, sizes.T, keys_.keys});
}

template <class T>
std::string TopK<T>::name() const {
  return fmt::format("topk({})", keys_.keys);
}

template class TopK<float>;
template class TopK<double>;

HWY_EXPORT(KeptBits);

template <class T>
void DropoutKeep<T>::row(const ObservedRow<T>& row) const {
  const DropoutRule rule = dropout_rule(*row.dropout);
  const DropoutStream stream = dropout_stream(*row.dropout, row.sequence, row.head);
  std::uint8_t* const keep = row_of(row.sequence, row.head, row.i);
  for (index j = 0; j < row.scores.size; ++j) {
    const bool masked = row.scores[j] == -std::numeric_limits<T>::infinity();
    keep[j] = masked || (rule.active() && drops(rule, stream, row.i, j)) ? 0 : 1;
  }
}

template <class T>
void DropoutKeep<T>::clear() const {
  detail::fill(keep_, 0);
}

template <class T>
void DropoutKeep<T>::see(const ObservedTile<T>& tile, Rows<T>) const {
  const TileSite& site = tile.site;
  std::uint64_t bits[kRowBlock];
  FOVEA_DISPATCH(KeptBits)(*tile.queries.dropout, site, bits);
  for (index r = 0; r < site.queries; ++r) {
    std::uint8_t* const keep = row_of(site.sequence, site.head, site.query + r) + site.key;
    for (index c = 0; c < site.keys; ++c) {
      const bool masked = tile.scores.at(r, c) == -std::numeric_limits<T>::infinity();
      keep[c] = masked ? 0 : static_cast<std::uint8_t>(bits[c] >> r & 1);
    }
  }
}

template <class T>
void DropoutKeep<T>::name_memory(OverlapCheck& memory) const {
  memory.write("dropout_keep", keep_);
}

template <class T>
void DropoutKeep<T>::check_shape(const AttentionSizes& sizes) const {
  detail::check_scores_written("dropout_keep", keep_, {sizes.B, sizes.H, sizes.T, sizes.S});
}

template class DropoutKeep<float>;
template class DropoutKeep<double>;

}  // namespace fovea::observe
#endif  // HWY_ONCE
