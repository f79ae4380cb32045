// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gathered_attention.h"

#include "fovea/base/memory.h"
#include "fovea/simd/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/gathered_attention.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// weights = softmax(scores), in place.
template <class T>
void Normalise(T* scores, index n) {
  const T max = Max(scores, n);
  const T sum = SumOf<T>(n, [=](auto lanes, index j) {
    const auto below = hn::Sub(lanes.Load(scores + j), lanes.Set(max));
    const auto e = Exp2OfWeight(lanes.d, hn::Mul(below, lanes.Set(kLog2E<T>)));
    lanes.Store(e, scores + j);
    return e;
  });
  const T factor = T{1} / sum;
  ForEachLane<T>(n, [=](auto lanes, index j) {
    lanes.Store(hn::Mul(lanes.Load(scores + j), lanes.Set(factor)), scores + j);
  });
}

// Keys that are computed together: they share the loads of q and of o.
constexpr index kTogether = 4;

// The scores of kKeys keys for all heads of a query; those of head h begin at scores[h n].
template <index kKeys, class T>
HWY_INLINE void ScoreKeys(const GatheredAttention<T>& a, const T* q, const std::int32_t* ids,
                          index n, T* scores) {
  const index H = a.heads, D = a.q.columns / H, group = H / a.kv_heads;
  const T* keys[kKeys];
  for (index j = 0; j < kKeys; ++j) keys[j] = a.k[ids[j]];
  const FullLanes<T> full{};
  const auto scale = static_cast<T>(a.scale);
  for (index h = 0; h < H; ++h) {
    const index first = h / group * D;
    Vector<T> sums[kKeys];
    for (index j = 0; j < kKeys; ++j) sums[j] = full.Set(T{0});
    ForEachLane<T>(D, [&](auto lanes, index c) {
      const auto x = lanes.Load(q + h * D + c);
      for (index j = 0; j < kKeys; ++j) {
        sums[j] = hn::MulAdd(x, lanes.Load(keys[j] + first + c), sums[j]);
      }
    });
    for (index j = 0; j < kKeys; ++j) {
      scores[h * n + j] = scale * hn::GetLane(hn::SumOfLanes(full.d, sums[j]));
    }
  }
}

// o += the weighted values of kKeys keys, for all heads.
template <index kKeys, class T>
HWY_INLINE void AddValues(const GatheredAttention<T>& a, const T* weights, const std::int32_t* ids,
                          index n, T* o) {
  const index H = a.heads, Dv = a.v.columns / a.kv_heads, group = H / a.kv_heads;
  const T* values[kKeys];
  for (index j = 0; j < kKeys; ++j) values[j] = a.v[ids[j]];
  const FullLanes<T> full{};
  for (index h = 0; h < H; ++h) {
    const index first = h / group * Dv;
    Vector<T> factors[kKeys];
    for (index j = 0; j < kKeys; ++j) factors[j] = full.Set(weights[h * n + j]);
    ForEachLane<T>(Dv, [&](auto lanes, index c) {
      auto sum = lanes.Load(o + h * Dv + c);
      for (index j = 0; j < kKeys; ++j) {
        sum = hn::MulAdd(factors[j], lanes.Load(values[j] + first + c), sum);
      }
      lanes.Store(sum, o + h * Dv + c);
    });
  }
}

// One query. `scores` has room for H n numbers. Rows of keys are taken in order, all heads of a row
// together: they lie side by side.
template <class T>
void AttendRow(const GatheredAttention<T>& a, index query, T* scores, T* o) {
  const index H = a.heads;
  const std::int32_t* const ids = a.rows.ids.data + a.rows.offsets[query];
  const index n = a.rows.offsets[query + 1] - a.rows.offsets[query];
  const T* const q = a.q[query];
  index j = 0;
  for (; j + kTogether <= n; j += kTogether) ScoreKeys<kTogether>(a, q, ids + j, n, scores + j);
  for (; j < n; ++j) ScoreKeys<1>(a, q, ids + j, n, scores + j);
  for (index h = 0; h < H; ++h) Normalise(scores + h * n, n);
  std::fill_n(o, H * (a.v.columns / a.kv_heads), T{0});
  for (j = 0; j + kTogether <= n; j += kTogether) {
    AddValues<kTogether>(a, scores + j, ids + j, n, o);
  }
  for (; j < n; ++j) AddValues<1>(a, scores + j, ids + j, n, o);
}

auto AttendRowKernel() { return PerPrecision{AttendRow<float>, AttendRow<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"

namespace fovea {
namespace {

HWY_EXPORT(AttendRowKernel);

template <class T>
void check_heads(const GatheredAttention<T>& a) {
  const auto divides = [](index heads, index columns) { return heads > 0 && columns % heads == 0; };
  check(divides(a.heads, a.q.columns) && divides(a.kv_heads, a.k.columns) &&
            divides(a.kv_heads, a.v.columns) && a.heads % a.kv_heads == 0,
        "gathered attention: q has {} columns for {} heads, k {} and v {} for {}", a.q.columns,
        a.heads, a.k.columns, a.v.columns, a.kv_heads);
  check(a.q.columns / a.heads == a.k.columns / a.kv_heads && a.k.rows == a.v.rows,
        "gathered attention: q has heads of {}, k of {}; k has {} rows, v {}",
        a.q.columns / a.heads, a.k.columns / a.kv_heads, a.k.rows, a.v.rows);
}

// Returns the most rows that a query sees.
template <class T>
index check_seen(const GatheredAttention<T>& a) {
  const auto& [ids, offsets] = a.rows;
  check(offsets.size == a.q.rows + 1 && offsets[0] == 0 && offsets[a.q.rows] == ids.size,
        "gathered attention: {} offsets for {} queries and {} ids", offsets.size, a.q.rows,
        ids.size);
  index most = 0;
  for (index i = 0; i < a.q.rows; ++i) {
    check(offsets[i] < offsets[i + 1], "gathered attention: query {} sees no key", i);
    most = std::max<index>(most, offsets[i + 1] - offsets[i]);
  }
  for (const std::int32_t id : ids) {
    check(id >= 0 && id < a.k.rows, "gathered attention: there is no row {} of {}", id, a.k.rows);
  }
  return most;
}

// The first rows that a query sees: more would take the place of those in use.
template <class T>
void prefetch_rows_of(const GatheredAttention<T>& a, index query) {
  const index bytes = (a.k.columns + a.v.columns) * static_cast<index>(sizeof(T));
  const index first = a.rows.offsets[query], all = a.rows.offsets[query + 1] - first;
  const index count = std::min(all, Prefetch::kMostBytes / std::max<index>(bytes, 1));
  for (index j = first; j < first + count; ++j) {
    detail::prefetch_row(a.k, a.rows.ids[j]);
    detail::prefetch_row(a.v, a.rows.ids[j]);
  }
}

}  // namespace

template <class T>
void gathered_attention(const Context& ctx, const GatheredAttention<T>& a, Rows<T> o) {
  check_heads(a);
  check_rows("gathered attention", "o", o, a.q.rows, a.v.columns / a.kv_heads * a.heads);
  if (a.q.rows == 0) return;
  const index most = check_seen(a);
  const auto row = FOVEA_DISPATCH(AttendRowKernel)().of<T>();
  const double values =
      static_cast<double>(a.rows.ids.size) * static_cast<double>(a.k.columns + a.v.columns);
  const ProfileScope scope(ctx, {"gathered attention",
                                 {a.q.rows, most, a.q.columns},
                                 2 * values * static_cast<double>(a.heads / a.kv_heads),
                                 values * sizeof(T)});
  ctx.for_ranges(a.q.rows, 2 * values / static_cast<double>(a.q.rows), [&](index begin, index end) {
    Scratch scratch;
    T* const scores = scratch.allocate<T>(a.heads * most);
    for (index i = begin; i < end; ++i) {
      if (i + 1 < end) prefetch_rows_of(a, i + 1);
      row(a, i, scores, o[i]);
    }
  });
}

template void gathered_attention(const Context&, const GatheredAttention<float>&, Rows<float>);
template void gathered_attention(const Context&, const GatheredAttention<double>&, Rows<double>);

}  // namespace fovea
#endif  // HWY_ONCE
