// SPDX-License-Identifier: Apache-2.0
// Sums and maxima of contiguous values. Included from simd-inl.h.
#if defined(FOVEA_SIMD_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_REDUCE_INL_H_
#undef FOVEA_SIMD_REDUCE_INL_H_
#else
#define FOVEA_SIMD_REDUCE_INL_H_
#endif

#include <limits>

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// Joins map(lanes, i) for i = 0, kLanes ... below n into one value. `join` of two vectors must not
/// mind that order is not that of the values, but the order is fixed: it depends on n and the
/// instruction set alone. Lanes beyond n count as `neutral`.
template <class T, class Map, class Join, class Last>
HWY_INLINE T Reduce(index n, T neutral, Map&& map, Join&& join, Last&& last) {
  constexpr index kN = kLanes<T>;
  const FullLanes<T> full{};
  // Four chains hide the latency of an addition.
  Vector<T> r0 = full.Set(neutral), r1 = r0, r2 = r0, r3 = r0;
  index i = 0;
  for (; i + 4 * kN <= n; i += 4 * kN) {
    r0 = join(r0, map(full, i));
    r1 = join(r1, map(full, i + kN));
    r2 = join(r2, map(full, i + 2 * kN));
    r3 = join(r3, map(full, i + 3 * kN));
  }
  for (; i + kN <= n; i += kN) r0 = join(r0, map(full, i));
  if (i < n) {
    const TailLanes<T> tail{{}, n - i};
    r1 = join(r1, tail.Keep(map(tail, i), neutral));
  }
  return hn::GetLane(last(full.d, join(join(r0, r1), join(r2, r3))));
}

/// Sum over i < n of map(lanes, i), a vector of values i, i + 1, ...
template <class T = float, class Map>
HWY_INLINE T SumOf(index n, Map&& map) {
  return Reduce<T>(
      n, T{0}, map, [](auto a, auto b) { return hn::Add(a, b); },
      [](auto d, auto v) { return hn::SumOfLanes(d, v); });
}

/// Maximum over i < n of map(lanes, i); the lowest finite value for n = 0; any value if one is NaN.
template <class T = float, class Map>
HWY_INLINE T MaxOf(index n, Map&& map) {
  return Reduce<T>(
      n, std::numeric_limits<T>::lowest(), map, [](auto a, auto b) { return hn::Max(a, b); },
      [](auto d, auto v) { return hn::MaxOfLanes(d, v); });
}

template <class T>
HWY_INLINE T Sum(const T* x, index n) {
  return SumOf<T>(n, [x](auto lanes, index i) { return lanes.Load(x + i); });
}

/// Sum of (x - mean)^2.
template <class T>
HWY_INLINE T SumOfSquares(const T* x, index n, T mean = T{0}) {
  return SumOf<T>(n, [x, mean](auto lanes, index i) {
    const auto centred = hn::Sub(lanes.Load(x + i), lanes.Set(mean));
    return hn::Mul(centred, centred);
  });
}

template <class T>
HWY_INLINE T Dot(const T* x, const T* y, index n) {
  return SumOf<T>(
      n, [x, y](auto lanes, index i) { return hn::Mul(lanes.Load(x + i), lanes.Load(y + i)); });
}

template <class T>
HWY_INLINE T Max(const T* x, index n) {
  return MaxOf<T>(n, [x](auto lanes, index i) { return lanes.Load(x + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_REDUCE_INL_H_
