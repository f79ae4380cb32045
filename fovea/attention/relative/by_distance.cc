// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/relative/by_distance.h"

#include <algorithm>
#include <type_traits>

#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/relative/by_distance.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

// Adds values[n] to diagonal n of a tile, where column - row = n - (rows - 1).
template <class T>
void AddDiagonals(Rows<T> tile, const T* values) {
  for (index r = 0; r < tile.rows; ++r) {
    T* const row = tile[r];
    const T* const of_row = values + tile.rows - 1 - r;
    ForEachLane<T>(tile.columns, [&](auto lanes, index c) {
      lanes.Store(hn::Add(lanes.Load(row + c), lanes.Load(of_row + c)), row + c);
    });
  }
}

/// A vector of doubles from values that may be floats.
template <class T>
HWY_INLINE Vector<double> LoadDoubles(const T* p) {
  constexpr Tag<double> d;
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(d, p);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Tag<double> >(), p));
  }
}

// Adding one row after another would load vectors that overlap the vectors just stored, which
// stalls. Instead, rows that are one vector length apart are summed: their diagonals are shifted by
// whole vectors. Only these few sums are then shifted against each other.
template <class T>
void SumDiagonals(Rows<const T> tile, double* sums) {
  constexpr Tag<double> d;
  constexpr index kN = kLanes<double>;
  const index row_blocks = (tile.rows + kN - 1) / kN, column_blocks = (tile.columns + kN - 1) / kN;
  const index room = (row_blocks + column_blocks) * kN;
  Scratch scratch;
  double* const some = scratch.allocate<double>(room);
  double* const all = scratch.allocate<double>(room);
  std::fill_n(all, room, 0.0);
  for (index first = 0; first < std::min(kN, tile.rows); ++first) {
    std::fill_n(some, room, 0.0);
    for (index r = first; r < tile.rows; r += kN) {
      const T* const row = tile[r];
      double* const to = some + (row_blocks - 1) * kN - (r - first);
      index c = 0;
      for (; c + kN <= tile.columns; c += kN) {
        hn::Store(hn::Add(hn::Load(d, to + c), LoadDoubles(row + c)), d, to + c);
      }
      for (; c < tile.columns; ++c) to[c] += static_cast<double>(row[c]);
    }
    double* const shifted = all + kN - 1 - first;
    for (index n = 0; n + kN < room; n += kN) {
      hn::StoreU(hn::Add(hn::LoadU(d, shifted + n), hn::Load(d, some + n)), d, shifted + n);
    }
  }
  // all[m] is the sum where column - row = m + 1 - row_blocks kN.
  std::copy_n(all + row_blocks * kN - tile.rows, tile.rows + tile.columns - 1, sums);
}

auto AddDiagonalsKernel() { return PerPrecision{AddDiagonals<float>, AddDiagonals<double>}; }
auto SumDiagonalsKernel() { return PerPrecision{SumDiagonals<float>, SumDiagonals<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(AddDiagonalsKernel);
HWY_EXPORT(SumDiagonalsKernel);

TileDistances distances_of(const TileSite& site) {
  const index last_position = site.sequence.position(site.query) + site.queries - 1;
  return {site.key - last_position, site.queries + site.keys - 1};
}

template <class T>
void add_by_distance(const TileSite& site, const T* values, const ScoreTile<T>& tile) {
  const auto add_diagonals = FOVEA_DISPATCH(AddDiagonalsKernel)().of<T>();
  if (tile.lanes == TileLanes::kKeys) return add_diagonals(tile.rows(site), values);
  // With queries in the lanes, the distance decreases along a row.
  const index count = distances_of(site).count;
  Scratch scratch;
  T* const reversed = scratch.allocate<T>(count);
  std::reverse_copy(values, values + count, reversed);
  add_diagonals(tile.rows(site), reversed);
}

template <class T>
void sum_by_distance(const TileSite& site, const ScoreTile<T>& tile, double* sums) {
  FOVEA_DISPATCH(SumDiagonalsKernel)().of<T>()(tile.rows(site), sums);
}

template void add_by_distance(const TileSite&, const float*, const ScoreTile<float>&);
template void add_by_distance(const TileSite&, const double*, const ScoreTile<double>&);
template void sum_by_distance(const TileSite&, const ScoreTile<float>&, double*);
template void sum_by_distance(const TileSite&, const ScoreTile<double>&, double*);

}  // namespace fovea::detail
#endif  // HWY_ONCE
