// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/relative/shaw.h"

#include <algorithm>

#include "fovea/attention/relative/by_distance.h"
#include "fovea/base/check.h"
#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/relative/shaw.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/non_finite-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/rows-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

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

template <class T, class More>
HWY_INLINE void AddToRow(T* row, index columns, More&& more) {
  ForEachLane<T>(columns, [&](auto lanes, index c) {
    lanes.Store(hn::Add(lanes.Load(row + c), more(lanes, c)), row + c);
  });
}

// Keys in lanes.
template <class T>
void AddAlongKeys(const ShawTile<T>& shaw, const Spread<T>& spread, const ScoreTile<T>& tile) {
  for (index r = 0; r < shaw.queries; ++r) {
    AddToRow(tile.data + r * tile.stride, shaw.keys,
             [&](auto, index c) { return spread.Load(r, c); });
  }
}

// Queries in lanes: transposes one square of vectors at a time, unless the square has only one
// slot.
template <class T>
void AddAcrossKeys(const ShawTile<T>& shaw, Rows<const T> products, const Spread<T>& spread,
                   const ScoreTile<T>& tile) {
  constexpr index kN = kLanes<T>;
  HWY_ALIGN T square[kN * kN] = {}, turned[kN * kN];
  const auto slot = [&](index r, index c) {
    return std::clamp<index>(shaw.origin + c - r, 0, shaw.count - 1);
  };
  ForEachLane<T>(shaw.queries, [&](auto lanes, index r) {
    for (index c = 0; c < shaw.keys; c += kN) {
      const index first = slot(r + kN - 1, c);
      const bool one = first == slot(r, c + kN - 1);
      for (index i = 0; !one && i < std::min(kN, shaw.queries - r); ++i) {
        hn::Store(spread.Load(r + i, c), Tag<T>(), square + i * kN);
      }
      if (!one) TransposeSquare(square, kN, turned, kN);
      const T* const from = one ? products[first] + r : turned;
      const index step = one ? 0 : kN;
      for (index i = 0; i < std::min(kN, shaw.keys - c); ++i) {
        T* const scores = tile.data + (c + i) * tile.stride + r;
        lanes.Store(hn::Add(lanes.Load(scores), hn::LoadU(Tag<T>(), from + i * step)), scores);
      }
    }
  });
}

// The tile has one slot: a constant for each query.
template <class T>
void AddConstants(const ShawTile<T>& shaw, const T* constants, const ScoreTile<T>& tile) {
  if (tile.lanes == TileLanes::kQueries) {
    for (index c = 0; c < shaw.keys; ++c) {
      AddToRow(tile.data + c * tile.stride, shaw.queries,
               [&](auto lanes, index r) { return lanes.Load(constants + r); });
    }
    return;
  }
  for (index r = 0; r < shaw.queries; ++r) {
    AddToRow(tile.data + r * tile.stride, shaw.keys,
             [&](auto lanes, index) { return lanes.Set(constants[r]); });
  }
}

template <class T>
void AddProducts(const ShawTile<T>& shaw, Rows<const T> x, T factor, const ScoreTile<T>& tile) {
  Scratch scratch;
  const Rows<const T> products = Products(shaw, x, factor, scratch);
  if (shaw.count == 1) return AddConstants(shaw, products[0], tile);
  const Spread<T> spread(shaw, products, scratch);
  if (tile.lanes == TileLanes::kKeys) return AddAlongKeys(shaw, spread, tile);
  AddAcrossKeys(shaw, products, spread, tile);
}

/// Slots [first, first + sums.columns) of a tile, and the sums of each query in them.
template <class T>
struct UsedSlots {
  const ShawTile<T>& shaw;
  index first;
  Rows<const T> sums;  // [queries][slots]

  index count() const { return sums.columns; }
  Rows<const T> rows() const { return shaw.rows.slice(first, first + count()); }
};

// dx_r += factor * sum of sums[r][n] (row of slot n).
template <class T>
void PullRows(const UsedSlots<T>& used, T factor, Rows<T> dx) {
  Scratch scratch;
  const Rows<const T> sums = used.sums, table = ScaledRows(used.rows(), factor, scratch);
  const FiniteOperand<T> operand(table, true, scratch);
  const index whole = dx.columns / kLanes<T> * kLanes<T>, left = dx.columns - whole;
  const Rows<const T> finite = operand.finite();
  TileProduct<Into::kAdd>(TileOperands<T>{
      .a = sums, .b = finite.columns_slice(0, whole), .c = dx.columns_slice(0, whole)});
  if (left > 0) {
    const Rows<T> last(scratch.allocate<T>(dx.rows * kLanes<T>), dx.rows, kLanes<T>);
    TileProduct<Into::kOverwrite>(
        TileOperands<T>{.a = sums, .b = finite.columns_slice(whole, whole + kLanes<T>), .c = last});
    for (index r = 0; r < dx.rows; ++r) {
      for (index c = 0; c < left; ++c) dx[r][whole + c] += last[r][c];
    }
  }
  operand.ForEachLeftOut([&](index n, const T* row) {
    for (index r = 0; r < dx.rows; ++r) {
      if (sums[r][n] == T{0}) continue;
      for (index c = 0; c < dx.columns; ++c) dx[r][c] += sums[r][n] * row[c];
    }
  });
}

// dtable, at the row of slot n, += factor * sum of sums[r][n] x_r.
template <class T>
void PullTable(const UsedSlots<T>& used, Rows<const T> x, T factor, double* dtable) {
  Scratch scratch;
  const Rows<const T> sums = used.sums;
  const index W = x.columns, width = RoundUpToLanes<T>(W);
  const Rows<const T> whole = width == W ? x : Rows<const T>(ScaledRows(x, T{1}, scratch));
  const Rows<T> parts(scratch.allocate<T>(used.count() * width), used.count(), width);
  TileProduct<Into::kOverwrite>(TileOperands<T>{.a = Transposed(sums), .b = whole, .c = parts});
  for (index n = 0; n < used.count(); ++n) {
    double* const row = dtable + used.shaw.table_row(used.first + n) * W;
    const auto add = [&](T weight, const T* values) {
      const double by = static_cast<double>(factor) * static_cast<double>(weight);
      for (index c = 0; c < W; ++c) row[c] += by * static_cast<double>(values[c]);
    };
    if (!IsNonFinite(parts[n], W)) {
      add(T{1}, parts[n]);
      continue;
    }
    // A row of x may be masked and then may hold NaN or infinity.
    for (index r = 0; r < x.rows; ++r) {
      if (sums[r][n] != T{0}) add(sums[r][n], x[r]);
    }
  }
}

// Removes slots at both ends that are 0 for every query: the mask drops their distances.
template <class T>
UsedSlots<T> UsedSlotsOf(const ShawTile<T>& shaw, Rows<const T> sums) {
  const auto empty = [&](index n) {
    for (index r = 0; r < sums.rows; ++r) {
      if (sums[r][n] != T{0}) return false;
    }
    return true;
  };
  index first = 0, end = shaw.count;
  while (first < end && empty(first)) ++first;
  while (first < end && empty(end - 1)) --end;
  return {shaw, first, sums.columns_slice(first, end)};
}

template <class T>
void PullProducts(const ShawTile<T>& shaw, Rows<const T> x, T factor, Rows<const T> tile,
                  const ShawGradients<T>& gradients) {
  Scratch scratch;
  const UsedSlots<T> used = UsedSlotsOf(shaw, SlotSums(shaw, tile, scratch));
  if (gradients.dx.data != nullptr) PullRows(used, gradients.factor, gradients.dx);
  if (gradients.dtable != nullptr) PullTable(used, x, factor, gradients.dtable);
}

template <class T>
void AddVectors(const ShawTile<T>& shaw, const ScoreTile<const T>& weights, Rows<T> o) {
  Scratch scratch;
  const Rows<const T> sums = LaneSums(shaw, weights, scratch);
  const FiniteOperand<T> table(shaw.rows, true, scratch);
  TileProduct<Into::kAdd>(TileOperands<T>{
      .a = Transposed(table.finite()), .b = sums, .c = {o.data, o.rows, sums.columns, o.stride}});
  table.ForEachLeftOut([&](index n, const T* row) {
    for (index r = 0; r < shaw.queries; ++r) {
      if (sums[n][r] == T{0}) continue;
      for (index c = 0; c < o.rows; ++c) o[c][r] += sums[n][r] * row[c];
    }
  });
}

template <class T>
ShawKernels<T> KernelsFor() {
  return {AddProducts<T>, PullProducts<T>, AddVectors<T>, kLanes<T>};
}
auto Kernels() { return PerPrecision{KernelsFor<float>(), KernelsFor<double>()}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

template <class T>
index ShawTable<T>::row_at(index distance) const {
  const index s = clip();
  return std::clamp(order == ShawOrder::kQueryMinusKey ? -distance : distance, -s, s) + s;
}

template <class T>
void ShawTable<T>::store_gradient(const double* sums, index heads) const {
  const index size = gradient_size();
  for (index n = 0; n < size; ++n) {
    double total = 0;
    for (index h = 0; h < heads; ++h) total += sums[h * size + n];
    gradient[n / rows.columns][n % rows.columns] = static_cast<T>(total);
  }
}

template <class T>
void ShawTable<T>::check_rows() const {
  check(rows.rows % 2 == 1, "shaw: the table must have 2s+1 rows, an odd number; it has {}",
        rows.rows);
}

template <class T>
void ShawTable<T>::check_width(std::string_view letter, index width) const {
  const auto& [table, dtable, of] = *this;
  check(
      table.columns == width,
      "attention: the table of shaw must be [2s+1, {}={}]; it is [{}, {}]{}", letter, width,
      table.rows, table.columns,
      table.columns + 1 == width && letter == "D" ? "; the score concat makes rows of D + 1" : "");
  check(table.data != nullptr, "attention: the table of shaw has a shape but no data");
  check(dtable.data == nullptr || (dtable.rows == table.rows && dtable.columns == width),
        "attention: dtable of shaw must be [{}, {}={}] or empty; it is [{}, {}]", table.rows,
        letter, width, dtable.rows, dtable.columns);
}

template struct ShawTable<float>;
template struct ShawTable<double>;

HWY_EXPORT(Kernels);

namespace {

template <class T>
ShawKernels<T> kernels() {
  return FOVEA_DISPATCH(Kernels)().of<T>();
}

constexpr index kGroup = 16;  // whole vectors of every instruction set

// Calls f(part, r) for parts of the tile that begin at query r.
template <class T, class F>
void for_each_part(const TileSite& site, const ShawTable<T>& table, F&& f) {
  const ShawTile<T> whole(site, table);
  if (whole.count == 1) return f(whole, 0);
  for (index r = 0; r < site.queries; r += kGroup) {
    const index queries = std::min(kGroup, site.queries - r);
    f(ShawTile<T>({site.sequence, site.head, site.query + r, queries, site.key, site.keys}, table),
      r);
  }
}

// The tile from query r on.
template <class V>
ScoreTile<V> from(const ScoreTile<V>& tile, index r) {
  const bool across = tile.lanes == TileLanes::kQueries;
  return {tile.data + (across ? r : r * tile.stride), tile.stride, tile.lanes};
}

}  // namespace

template <class T>
ShawTile<T>::ShawTile(const TileSite& site, const ShawTable<T>& table)
    : queries(site.queries), keys(site.keys), last_row(table.rows.rows - 1) {
  const auto [nearest, distances] = distances_of(site);
  const index s = table.clip();
  const index first = std::clamp(nearest, -s, s);
  count = std::clamp(nearest + distances - 1, -s, s) - first + 1;
  origin = site.key - site.sequence.position(site.query) - first;
  first_row = table.row_at(first);
  row_step = table.order == ShawOrder::kQueryMinusKey ? -1 : 1;
  rows = {table.rows[first_row], count, table.rows.columns, row_step * table.rows.stride};
}

template <class T>
void add_shaw_products(const TileSite& site, const ShawTable<T>& table, Rows<const T> x, T factor,
                       const ScoreTile<T>& tile) {
  const auto add = kernels<T>().add_products;
  for_each_part(site, table, [&](const ShawTile<T>& part, index r) {
    add(part, x.slice(r, r + part.queries), factor, from(tile, r));
  });
}

template <class T>
void pull_shaw_products(const TileSite& site, const ShawTable<T>& table, Rows<const T> x, T factor,
                        Rows<const T> tile, const ShawGradients<T>& gradients) {
  const auto pull = kernels<T>().pull_products;
  const Rows<T>& dx = gradients.dx;
  for_each_part(site, table, [&](const ShawTile<T>& part, index r) {
    const index end = r + part.queries;
    pull(part, x.slice(r, end), factor, tile.slice(r, end),
         {dx.data == nullptr ? dx : dx.slice(r, end), gradients.factor, gradients.dtable});
  });
}

template <class T>
bool shaw_vectors_fit(const ScoreTile<const T>& weights, Rows<T> o) {
  const index lanes = kernels<T>().lanes;
  return weights.lanes == TileLanes::kQueries && weights.stride % lanes == 0 &&
         o.stride % lanes == 0;
}

template <class T>
void add_shaw_vectors(const TileSite& site, const ShawTable<T>& table,
                      const ScoreTile<const T>& weights, Rows<T> o) {
  const auto add = kernels<T>().add_vectors;
  for_each_part(site, table, [&](const ShawTile<T>& part, index r) {
    add(part, from(weights, r), Rows<T>(o.data + r, o.rows, part.queries, o.stride));
  });
}

#define FOVEA_INSTANTIATE(T)                                                                      \
  template struct ShawTile<T>;                                                                    \
  template void add_shaw_products(const TileSite&, const ShawTable<T>&, Rows<const T>, T,         \
                                  const ScoreTile<T>&);                                           \
  template void pull_shaw_products(const TileSite&, const ShawTable<T>&, Rows<const T>, T,        \
                                   Rows<const T>, const ShawGradients<T>&);                       \
  template bool shaw_vectors_fit(const ScoreTile<const T>&, Rows<T>);                             \
  template void add_shaw_vectors(const TileSite&, const ShawTable<T>&, const ScoreTile<const T>&, \
                                 Rows<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
#endif  // HWY_ONCE
