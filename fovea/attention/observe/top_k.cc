// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/observe/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/observe/observe.h"
#include "fovea/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/observe/top_k.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::observe {

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

}  // namespace fovea::observe
#endif  // HWY_ONCE
