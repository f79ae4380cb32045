// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/dense.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"
#include "fovea/simd/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/bias/dense.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE void AddRow(const T* from, index n, T* to) {
  ForEachLane<T>(n, [&](auto lanes, index i) {
    lanes.Store(hn::Add(lanes.Load(to + i), lanes.Load(from + i)), to + i);
  });
}

// to += from. The rows of `to` may all be the same row.
template <class T>
void AddRows(Rows<const T> from, Rows<T> to) {
  for (index r = 0; r < from.rows; ++r) AddRow(from[r], from.columns, to[r]);
}

// to += the transpose of from, a few columns at a time, so that the transposed part is still in L1.
template <class T>
void AddTransposed(Rows<const T> from, Rows<T> to) {
  constexpr index kColumns = 16;
  const index stride = RoundUpToLanes<T>(from.rows);
  Scratch scratch;
  T* const turned = scratch.allocate<T>(kColumns * stride);
  for (index c = 0; c < from.columns; c += kColumns) {
    const index end = std::min(from.columns, c + kColumns);
    RowsToLanes<T>(from.columns_slice(c, end), from.rows, turned, stride);
    for (index i = c; i < end; ++i) AddRow(turned + (i - c) * stride, to.columns, to[i]);
  }
}

auto AddRowsKernel() { return PerPrecision{AddRows<float>, AddRows<double>}; }
auto AddTransposedKernel() { return PerPrecision{AddTransposed<float>, AddTransposed<double>}; }
auto ClearPastCachesKernel() {
  return PerPrecision{ClearPastCaches<float>, ClearPastCaches<double>};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(AddRowsKernel);
HWY_EXPORT(AddTransposedKernel);
HWY_EXPORT(ClearPastCachesKernel);

namespace {

template <class T>
T& entry(const ScoreView<T>& view, const ScoreSite& site) {
  const Sequence& sequence = site.sequence;
  return view.at(sequence.batch, site.head, sequence.query_row + site.i, sequence.key_row + site.j);
}

// The entries of a tile, one row for each query; with a broadcast row, the same row for each.
template <class T>
Rows<T> entries(const ScoreView<T>& view, const TileSite& site) {
  return {&entry(view, site.at(0, 0)), site.queries, site.keys,
          view.queries == 1 ? 0 : view.query_stride};
}

// A gradient of more bytes than this is cleared with stores that bypass the caches: the first tile
// that adds to it would not find it there anyway.
constexpr double kMostBytesOfCaches = 8 << 20;
// Shorter rows are cleared as usual: too much of them is outside whole cache lines.
constexpr double kFewBytesOfARow = 1 << 10;

}  // namespace

namespace bias {

template <class T>
T Dense<T>::apply_one(const ScoreSite& site, const ScoreRows<T>&, T score) const {
  return score + entry(values_, site);
}

template <class T>
T Dense<T>::pull_one(const ScoreSite& site, const ScoreRows<T>&, T, T dscore,
                     const ScoreGradients<T>&) const {
  if (!dvalues_.empty()) entry(dvalues_, site) += dscore;
  return dscore;
}

template <class T>
void Dense<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  if (tile.lanes == TileLanes::kKeys) {
    FOVEA_DISPATCH(AddRowsKernel)().of<T>()(entries(values_, site), tile.rows(site));
  } else {
    FOVEA_DISPATCH(AddTransposedKernel)().of<T>()(entries(values_, site), tile.rows(site));
  }
}

template <class T>
void Dense<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                    const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  if (dvalues_.empty()) return;
  if (dscores.lanes == TileLanes::kQueries) {
    return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  }
  FOVEA_DISPATCH(AddRowsKernel)().of<T>()(dscores.rows(site), entries(dvalues_, site));
}

// One row for all queries stays in the cache without a prefetch.
template <class T>
void Dense<T>::prefetch_apply(const TileSite& site, Prefetch& prefetch) const {
  if (values_.queries > 1) prefetch.add_soon(entries(values_, site));
}

template <class T>
void Dense<T>::prefetch_pull(const TileSite& site, Prefetch& prefetch) const {
  if (!dvalues_.empty() && dvalues_.queries > 1) prefetch.add_soon(entries(dvalues_, site));
}

template <class T>
SharedGradient Dense<T>::shared_gradient() const {
  if (dvalues_.empty()) return {};
  return {.batch = dvalues_.batch == 1, .heads = dvalues_.heads == 1};
}

template <class T>
void Dense<T>::start_gradient(const Context& ctx) const {
  if (dvalues_.empty()) return;
  const index H = dvalues_.heads, rows = dvalues_.queries, S = dvalues_.keys;
  const double bytes = static_cast<double>(S) * sizeof(T);
  const bool far = bytes >= kFewBytesOfARow &&
                   bytes * static_cast<double>(dvalues_.batch * H * rows) > kMostBytesOfCaches;
  ctx.for_ranges(dvalues_.batch * H * rows, bytes, [&](index begin, index end) {
    for (index n = begin, count = 0; n < end; n += count) {
      const index i = n % rows;
      count = std::min(end - n, rows - i);
      const Rows<T> of_head(dvalues_.row(n / rows / H, n / rows % H, i), count, S,
                            dvalues_.query_stride);
      if (far) {
        FOVEA_DISPATCH(ClearPastCachesKernel)().of<T>()(of_head);
      } else {
        for (index r = 0; r < count; ++r) std::fill_n(of_head[r], S, T{0});
      }
    }
  });
}

template <class T>
void Dense<T>::name_parameters(OverlapCheck& memory) const {
  memory.read("the dense bias", values_);
}

template <class T>
void Dense<T>::name_gradients(OverlapCheck& memory) const {
  memory.write("the gradient of the dense bias", dvalues_);
}

template <class T>
void Dense<T>::check_shape(const AttentionSizes& sizes) const {
  const auto [B, T_, S, H, G, D, Dv] = sizes;
  const auto& v = values_;
  check((v.batch == 1 || v.batch == B) && (v.heads == 1 || v.heads == H) &&
            (v.queries == 1 || v.queries == T_) && v.keys == S,
        "attention: the dense bias must be [{} or 1, {} or 1, {} or 1, {}]; it is [{}, {}, {}, {}]",
        B, H, T_, S, v.batch, v.heads, v.queries, v.keys);
  check(B == 0 || H == 0 || T_ == 0 || S == 0 || v.data != nullptr,
        "attention: the dense bias has a shape but no data");
  check(v.batch_stride >= 0 && v.head_stride >= 0 && v.query_stride >= 0,
        "attention: the dense bias has a negative stride: {}, {}, {}", v.batch_stride,
        v.head_stride, v.query_stride);
  if (dvalues_.empty()) return;
  detail::check_scores_written("the gradient of the dense bias", dvalues_,
                               {v.batch, v.heads, v.queries, v.keys});
}

template class Dense<float>;
template class Dense<double>;

}  // namespace bias
}  // namespace fovea
#endif  // HWY_ONCE
