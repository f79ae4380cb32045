// SPDX-License-Identifier: Apache-2.0
// What the steps of a program run over: strips of a tile, and its tables.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "fovea/attention/lambda/run_lanes.h"
#include "fovea/base/memory.h"

#if defined(FOVEA_ATTENTION_LAMBDA_LANE_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_LAMBDA_LANE_STRIPS_INL_H_
#undef FOVEA_ATTENTION_LAMBDA_LANE_STRIPS_INL_H_
#else
#define FOVEA_ATTENTION_LAMBDA_LANE_STRIPS_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

// Values of a strip at most. Sixteen rows of a tile of 64 queries are whole lines of a table of
// floats, whose rows are columns there; programs of many strips take half, to leave them in L1.
constexpr index kStrip = 1024;
static_assert(kStrip / 2 % kLanes<float> == 0 && kStrip / 2 % kLanes<double> == 0);
inline index StripLength(const LaneProgram& lane_program) {
  constexpr index kFew = 6;
  return lane_program.strips() <= kFew ? kStrip : kStrip / 2;
}

// Rows [row, row + rows) x columns [column, column + columns) of a tile, `width` values of a strip
// to a row: whole vectors.
struct StripPart {
  index row, rows, column, columns, width;
  index size() const { return rows * width; }
};

// Values for each diagonal of the tile: column - row = 1 - rows, ...
template <class T>
struct Diagonals {
  Scratch scratch;
  const T* values[LaneTape::kMost];
};

// The steps that read tables, and add to their gradients.
struct LaneTables {
  const LaneTape& program;
  double* sums;      // for gradients without memory of their own
  int beyond;        // the read of an index beyond its axis
  double* diagonal;  // [stores][rows + columns + a vector]: sums over the diagonals of the tile
  index diagonals;   // how many values one of them has
};

template <class T>
struct LaneRun {
  const LaneProgram& lane_program;
  const LaneTile<T>& tile;
  const Diagonals<T>& diagonals;
  T* strips[LaneTape::kMost + 2];
  double* sums;
  LaneTables* tables;

  void Step(const LaneStep& step, const StripPart& part) const;
  void Unary(const LaneStep& step, index n) const;
  void Binary(const LaneStep& step, index n) const;
  void Select(const LaneStep& step, index n) const;
  void Places(const LaneStep& step, const StripPart& part) const;
  void Load(const LaneStep& step, const StripPart& part) const;
  void Gather(const LaneStep& step, const StripPart& part) const;
  void Store(const LaneStep& step, const StripPart& part) const;
  void SumDiagonals(const LaneStep& step, const StripPart& part) const;
  void StoreDiagonals() const;
  void Bits(const LaneStep& step, index n) const;

  template <class F>
  HWY_INLINE void Map(const LaneStep& step, index n, F&& f) const {
    constexpr Tag<T> d;
    const T* a = strips[step.a];
    T* to = strips[step.to];
    for (index i = 0; i < n; i += kLanes<T>) hn::StoreU(f(d, hn::LoadU(d, a + i)), d, to + i);
  }
  template <class F>
  HWY_INLINE void Map2(const LaneStep& step, index n, F&& f) const {
    constexpr Tag<T> d;
    const T* a = strips[step.a];
    const T* b = strips[step.b];
    T* to = strips[step.to];
    for (index i = 0; i < n; i += kLanes<T>) {
      hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, to + i);
    }
  }
  // 1 where f is true, 0 elsewhere.
  template <class F>
  HWY_INLINE void Compare(const LaneStep& step, index n, F&& f) const {
    Map2(step, n,
         [&](auto d, auto a, auto b) { return hn::IfThenElseZero(f(a, b), hn::Set(d, T{1})); });
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_LAMBDA_LANE_STRIPS_INL_H_
