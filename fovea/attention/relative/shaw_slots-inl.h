// SPDX-License-Identifier: Apache-2.0
// The slots of a tile (shaw_tile.h), for one instruction set: their products with the tile's
// queries, and the sums of a tile's values by slot.
#include <algorithm>

#include "fovea/attention/relative/shaw_tile.h"
#include "fovea/base/memory.h"

#if defined(FOVEA_ATTENTION_RELATIVE_SHAW_SLOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_RELATIVE_SHAW_SLOTS_INL_H_
#undef FOVEA_ATTENTION_RELATIVE_SHAW_SLOTS_INL_H_
#else
#define FOVEA_ATTENTION_RELATIVE_SHAW_SLOTS_INL_H_
#endif

#include "fovea/simd/product-inl.h"
#include "fovea/simd/rows-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

// Both directions use a matrix [slots][queries]. In the forward it is the product of the tile's
// rows x with the slots of the table, and is spread over the tile; in the backward the tile is
// gathered into it. For a query, each slot belongs to at most one key, except the first and the
// last slot, where distances are clipped. So a row of the tile is a run of the query's products
// between two constants, and its slots are a run of the tile's values between two sums.
//
// In a long sequence most tiles lie beyond the clip and have one slot: a dot product for each
// query, and backward a sum along the keys. With 64 keys, 128 queries and W = 64 these are 8192
// multiply-adds, beside the 2.6 million of the tile itself. Tiles that the clip cuts are processed
// by 16 queries at a time, which use at most 2 s + 1 slots, and often fewer.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

/// (factor * x_r) . (row of slot n), as [count][queries rounded up]. The order of a sum depends
/// only on its row of the table: across the columns for the first and last slot, the only ones that
/// most tiles use, and one column after another for those between.
template <class T>
Rows<const T> Products(const ShawTile<T>& shaw, Rows<const T> x, T factor, Scratch& scratch) {
  const index stride = RoundUpToLanes<T>(shaw.queries);
  const Rows<const T> table = shaw.rows;
  const Rows<T> products(scratch.allocate<T>(shaw.count * stride), shaw.count, stride);
  if (shaw.count > 1 || !shaw.at_end(0)) {
    T* const lanes = scratch.allocate<T>(x.columns * stride);
    RowsToLanes<T>(x, shaw.queries, lanes, stride, Times<T>{factor});
    TileProduct<Into::kOverwrite>(
        TileOperands<T>{.a = table, .b = {lanes, x.columns, stride}, .c = products});
  }
  for (const index n : {index{0}, shaw.count - 1}) {
    for (index r = 0; shaw.at_end(n) && r < shaw.queries; ++r) {
      const T *const row = table[n], *const of = x[r];
      products[n][r] = SumOf<T>(x.columns, [&](auto lanes, index c) {
        return hn::Mul(hn::Mul(lanes.Load(of + c), lanes.Set(factor)), lanes.Load(row + c));
      });
    }
  }
  return products;
}

/// The products of each query by slot, with a vector of copies of the first before them and of the
/// last after them. So the products for any vector of a tile's row are contiguous.
template <class T>
class Spread {
 public:
  Spread(const ShawTile<T>& shaw, Rows<const T> products, Scratch& scratch)
      : count_(shaw.count), origin_(shaw.origin) {
    const index room = RoundUpToLanes<T>(count_) + 2 * kN;
    rows_ = Rows<T>(scratch.allocate<T>(shaw.queries * room), shaw.queries, room);
    const Rows<T> slots(rows_.data + kN, shaw.queries, count_, room);
    LanesToRows<T>(products.data, products.stride, shaw.queries, slots);
    for (index r = 0; r < shaw.queries; ++r) {
      std::fill_n(rows_[r], kN, slots[r][0]);
      std::fill_n(slots[r] + count_, kN, slots[r][count_ - 1]);
    }
  }
  /// The products of query r for keys c, c + 1, ...
  HWY_INLINE Vector<T> Load(index r, index c) const {
    const index slot = std::clamp(origin_ + c - r, -kN, count_);
    return hn::LoadU(Tag<T>(), rows_[r] + kN + slot);
  }

 private:
  static constexpr index kN = kLanes<T>;
  index count_, origin_;
  Rows<T> rows_;
};

/// The sums of a tile [queries, keys] by slot: [queries][count].
template <class T>
Rows<const T> SlotSums(const ShawTile<T>& shaw, Rows<const T> tile, Scratch& scratch) {
  const index count = shaw.count, keys = shaw.keys;
  const Rows<T> sums(scratch.allocate<T>(shaw.queries * count), shaw.queries, count);
  for (index r = 0; r < shaw.queries; ++r) {
    const T* const row = tile[r];
    T* const to = sums[r];
    if (count == 1) {
      to[0] = Sum(row, keys);
      continue;
    }
    const index origin = shaw.origin - r;  // the slot of key 0
    const index first = std::clamp<index>(1 - origin, 0, keys);
    const index last = std::clamp(count - 1 - origin, first, keys);
    std::fill_n(to, count, T{0});
    std::copy(row + first, row + last, to + origin + first);
    to[0] = Sum(row, first);
    to[count - 1] = Sum(row + last, keys - last);
  }
  return sums;
}

// Sums the weights of the first and the last slot, one key after another: so keys of weight 0,
// which other queries of the tile see, change no bit of a sum.
template <class T>
void SumEnds(const ShawTile<T>& shaw, const ScoreTile<const T>& weights, Rows<T> sums) {
  constexpr Tag<T> d;
  const index last = shaw.count - 1;
  for (index lane = 0; lane < sums.columns; lane += kLanes<T>) {
    const auto query = hn::Iota(d, static_cast<T>(lane));
    auto of_first = hn::Zero(d), of_last = hn::Zero(d);
    for (index c = 0; c < shaw.keys; ++c) {
      const auto weight = hn::Load(d, weights.data + c * weights.stride + lane);
      const index slot = shaw.origin + c;  // of query 0
      const auto before = hn::Ge(query, hn::Set(d, static_cast<T>(slot)));
      const auto behind = hn::Le(query, hn::Set(d, static_cast<T>(slot - last)));
      of_first = hn::Add(of_first, hn::IfThenElseZero(before, weight));
      of_last = hn::Add(of_last, hn::IfThenElseZero(behind, weight));
    }
    hn::Store(of_first, d, sums[0] + lane);
    hn::Store(of_last, d, sums[last] + lane);
  }
}

/// SlotSums for a tile that has queries in its lanes: [count][queries rounded up].
template <class T>
Rows<const T> LaneSums(const ShawTile<T>& shaw, const ScoreTile<const T>& weights,
                       Scratch& scratch) {
  const index stride = RoundUpToLanes<T>(shaw.queries);
  const Rows<T> sums(scratch.allocate<T>(shaw.count * stride), shaw.count, stride);
  if (shaw.count == 1) {
    const T one = 1;
    // A row of ones.
    TileProduct<Into::kOverwrite>(TileOperands<T>{
        .a = {&one, 0, 0}, .b = {weights.data, shaw.keys, stride, weights.stride}, .c = sums});
    return sums;
  }
  const Rows<T> turned(scratch.allocate<T>(shaw.queries * shaw.keys), shaw.queries, shaw.keys);
  LanesToRows<T>(weights.data, weights.stride, shaw.queries, turned);
  RowsToLanes<T>(SlotSums<T>(shaw, turned, scratch), shaw.queries, sums.data, stride);
  SumEnds(shaw, weights, sums);
  return sums;
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_RELATIVE_SHAW_SLOTS_INL_H_
