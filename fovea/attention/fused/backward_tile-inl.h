// SPDX-License-Identifier: Apache-2.0
// A tile of the backward, for one instruction set.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/attention/fused/backward_chunk.h"
#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/score_tile.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/base/memory.h"

#if defined(FOVEA_ATTENTION_FUSED_BACKWARD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_BACKWARD_TILE_INL_H_
#undef FOVEA_ATTENTION_FUSED_BACKWARD_TILE_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_BACKWARD_TILE_INL_H_
#endif

#include "fovea/attention/dropout-inl.h"
#include "fovea/attention/fused/softmax_backward-inl.h"
#include "fovea/simd/bits-inl.h"
#include "fovea/simd/non_finite-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/rows-inl.h"
#include "fovea/simd/transpose-inl.h"

// Keys in lanes. A tile of 64 keys is transposed once, kt[D][64] and vt[Dv][64]; for each block of
// 128 queries there are five products, all with the same register block:
//
//   s  [query][64] = Q row (broadcast) x kt       p  = exp2((s - lse) log2 e), in place
//   dp [query][64] = dO row (broadcast) x vt      ds = p (dp - delta), in place
//   dV[64][Dv] += p  (broadcast, read down) x dO rows
//   dK[64][D]  += ds (broadcast, read down) x Q rows
//   dQ[query][D] += ds (broadcast, read along) x K rows
//
// dK and dV of the tile are written once. dQ is summed over the tiles of a chunk of keys in memory
// of the thread (in place, if there is only one chunk); the caller adds the chunks in ascending
// order. So the bits do not depend on which thread computed which chunk. Two passes (dQ by queries,
// dK and dV by keys) would need seven products. With D = Dv = 64 a score costs 640 flops and one
// exp; a block reads and writes dQ (32 KB) and p, ds (2 x 32 KB) from L2 for 5.2 Mflop.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

template <class T>
BackwardWidths WidthsOf(const BackwardCall<T>& call) {
  const index D = call.in.q.width, Dv = call.in.v.width;
  return {D, Dv, RoundUpToLanes<T>(D), RoundUpToLanes<T>(Dv)};
}

// One tile of keys, for one head at a time.
template <class T>
struct BackwardTile {
  const BackwardCall<T>& call;
  const BackwardChunk<T>& chunk;
  index key;         // first key of the tile
  index keys;        // 1 .. kLaneTile
  index stride = 0;  // keys rounded up to whole vectors
  index Dp = 0;      // D and Dv rounded up to whole vectors
  index Dvp = 0;

  T* kt = nullptr;  // [D][stride]
  T* vt = nullptr;  // [Dv][stride], scaled by 1 / (1 - p) of dropout
  T* k = nullptr;   // [keys][Dp], scaled
  // Shared by all tiles that run together:
  T* s = nullptr;       // [kRowBlock][stride], then p
  T* dp = nullptr;      // [kRowBlock][stride], then ds
  T* inputs = nullptr;  // the scores that each bias part reads, one tile per part

  T* dk = nullptr;     // [stride][Dp]
  T* dv = nullptr;     // [stride][Dvp]
  bool begun = false;  // whether dk and dv hold sums

  index head = 0;
  Span seen = {};   // queries of the head that keep any of the keys
  index query = 0;  // first query of the block
  index queries = 0;
  TileKind kind = TileKind::kAll;
  TileCover parts{0, 0};  // the parts of the block that the mask can keep

  const Sequence& sequence() const { return chunk.sequence; }
  TileSite site() const { return {sequence(), head, query, queries, key, keys}; }
  Rows<const T> query_rows(const View<const T>& view) const {
    return {view.row(sequence().batch, sequence().query_row + query, head), queries, view.width,
            view.length_stride};
  }
  template <class U>
  Rows<U> key_rows(const View<U>& view) const {
    return {view.row(sequence().batch, sequence().key_row + key, chunk.group), keys, view.width,
            view.length_stride};
  }
  Rows<const T> packed_q() const {
    return {chunk.packed.q + chunk.packed.slot(head, query) * Dp, queries, Dp};
  }
  Rows<const T> packed_d_o() const {
    return {chunk.packed.d_o + chunk.packed.slot(head, query) * Dvp, queries, Dvp};
  }
  Rows<const T> scaled_q() const { return packed_q().columns_slice(0, call.in.q.width); }
  Rows<const T> d_o() const { return packed_d_o().columns_slice(0, call.in.v.width); }
  T keep_scale() const {
    return static_cast<T>(call.dropout.active() ? call.dropout.keep_scale : 1.0);
  }
  Rows<T> dq_rows() const {
    return {chunk.dq.row(head, query), queries, call.in.q.width, chunk.dq.row_stride};
  }

  BackwardSizes AllocatedSizes() const {
    return {WidthsOf(call), keys, RoundUpToLanes<T>(keys), parts_with_scores(call.attention.bias)};
  }
  // Allocates what all tiles that run together share. `this` is the first of them and has the most
  // keys.
  void AllocateShared(Scratch& scratch);
  void Allocate(Scratch& scratch);
  void StartHead(index h);
  void AddBlock(index block);
  void FindParts();
  void PrefetchBias() const;
  void RunBlock();
  enum class Along { kRows, kLanes };  // the direction in which a product reads A
  RowLse<T> LseOf(index i) const;
  void WeighScores();
  void KeptBits(std::uint64_t* kept) const;
  bool Begin();
  void Clear();
  void AddProducts(bool first);
  template <class Keeps>
  void AddProduct(TileOperands<T> product, Along along, Keeps&& keeps);
  void AddParts(const TileOperands<T>& product, Along along);
  void Finish();
};

template <class T>
void BackwardTile<T>::AllocateShared(Scratch& scratch) {
  const BackwardSizes sizes = AllocatedSizes();
  s = scratch.allocate<T>(sizes.s);
  dp = scratch.allocate<T>(sizes.s);
  inputs = scratch.allocate<T>(sizes.inputs);
}

template <class T>
void BackwardTile<T>::Allocate(Scratch& scratch) {
  stride = RoundUpToLanes<T>(keys);
  const BackwardWidths widths = WidthsOf(call);
  Dp = widths.Dp;
  Dvp = widths.Dvp;
  const BackwardSizes sizes = AllocatedSizes();
  kt = scratch.allocate<T>(sizes.kt);
  vt = scratch.allocate<T>(sizes.vt);
  k = scratch.allocate<T>(sizes.k);
  dk = scratch.allocate<T>(sizes.dk);
  dv = scratch.allocate<T>(sizes.dv);
  RowsToLanes<T>(key_rows(call.in.k), keys, T{1}, kt, stride);
  // The factor 1 / (1 - p) of dropout is applied here, once, as the forward applied it to o.
  RowsToLanes<T>(key_rows(call.in.v), keys, keep_scale(), vt, stride);
  PackRows(key_rows(call.in.k), call.scale, Rows<T>(k, keys, Dp));
}

template <class T>
void BackwardTile<T>::StartHead(index h) {
  head = h;
  const auto [first, last] = call.attention.mask.query_range(sequence(), head, key, keys);
  // The chunk has memory only for its own range of queries, and a mask may give a wider range for a
  // tile than for the chunk.
  seen = {std::max(first, chunk.query_begin), std::min(last, chunk.query_end)};
}

// Adds the queries in [block, block + kRowBlock).
template <class T>
void BackwardTile<T>::AddBlock(index block) {
  query = std::max(seen.begin, block);
  queries = std::min(seen.end, block + kRowBlock) - query;
  if (queries <= 0) return;
  kind = call.attention.mask.classify(site());
  if (kind != TileKind::kNone) RunBlock();
}

template <class T>
void BackwardTile<T>::FindParts() {
  const bool masked = kind == TileKind::kSome;
  parts = masked ? TileCover(call.attention.mask, site(), TileLanes::kKeys, stride)
                 : TileCover(queries, stride);
}

// Asks for the memory that the biases add to in this block and read in the next one.
template <class T>
void BackwardTile<T>::PrefetchBias() const {
  if (chunk.prefetch == nullptr) return;
  TileSite next = site();
  next.query += queries;
  next.queries = std::min(kRowBlock, seen.end - next.query);
  for (const auto& part : call.attention.bias.parts()) {
    if (next.queries > 0) part->prefetch_apply(next, *chunk.prefetch);
    part->prefetch_pull(site(), *chunk.prefetch);
    if (!begun) part->prefetch_apply(site(), *chunk.prefetch);
  }
}

template <class T>
void BackwardTile<T>::RunBlock() {
  FindParts();
  PrefetchBias();
  const auto product_of_parts = [&](Rows<const T> rows_of_a, const T* lanes_of_b, T* c) {
    const TileOperands<T> whole{.a = rows_of_a,
                                .b = {lanes_of_b, rows_of_a.columns, stride},
                                .c = {c, queries, stride},
                                .prefetch = chunk.prefetch};
    parts.for_each_rows([&](Span rows, Span lanes) {
      TileProduct<Into::kOverwrite>(
          whole.rows_slice(rows.begin, rows.end).lanes_slice(lanes.begin, lanes.end));
    });
  };
  if (call.has_product()) {
    product_of_parts(scaled_q(), kt, s);
  } else {
    std::fill_n(s, queries * stride, T{0});
  }
  product_of_parts(d_o(), vt, dp);
  const Values<T>& values = call.attention.values;
  const ScoreTile<T> weights{s, stride, TileLanes::kKeys}, dweights{dp, stride, TileLanes::kKeys};
  pull_value_weights<T>(values, site(), d_o(), keep_scale(), dweights);
  const TileRows<T> rows{query_rows(call.in.q), key_rows(call.in.k), call.scale, scaled_q()};
  const index tile_size = kRowBlock * stride;
  transform_scores<T>(call.attention, {site(), kind, rows, weights, inputs, tile_size});
  WeighScores();
  const bool first = Begin();
  double* const sums = chunk.sums_of(head);
  pull_value_parameters<T>(values, site(), {s, stride, TileLanes::kKeys}, d_o(),
                           sums + gradient_size_of(call.attention.bias));
  if (call.has_bias()) {
    const Rows<T> dk_rows(dk, keys, call.in.q.width, Dp);
    pull_scores<T>(call.attention, {site(), kind, rows, dweights, inputs, tile_size},
                   {dq_rows(), dk_rows, sums});
  }
  AddProducts(first);
}

// Prepares dk and dv for the first block. Returns true if its products overwrite them; otherwise
// they are cleared.
template <class T>
bool BackwardTile<T>::Begin() {
  const bool filled = !begun && kind == TileKind::kAll && !call.has_bias();
  if (!begun && !filled) Clear();
  begun = true;
  return filled;
}

template <class T>
void BackwardTile<T>::Clear() {
  std::fill_n(dk, stride * Dp, T{0});
  std::fill_n(dv, stride * Dvp, T{0});
}

// s becomes p (after dropout), dp becomes ds.
template <class T>
void BackwardTile<T>::WeighScores() {
  static_assert(kRowBlock % kLaneTile == 0);
  std::uint64_t kept[kRowBlock];
  const bool drops = call.dropout.active(), masked = kind == TileKind::kSome || call.has_bias();
  if (drops) KeptBits(kept);
  const WeightTile<T> tile{
      queries, stride, s, dp, chunk.delta_of(head) + query, drops ? kept : nullptr, keep_scale()};
  NormBackward<T>(call.norm(), tile, masked, [&](index i) { return LseOf(i); });
  const bool joined = !call.attention.values.empty() && call.saved.d_lse.empty();
  if (joined && needs_lse(call.norm())) ClearWholeWeights(tile);
}

// The lse of a query. In an empty row all scores are masked, so any finite value is right. Only
// softmax has an lse.
template <class T>
RowLse<T> BackwardTile<T>::LseOf(index i) const {
  const auto& lse = call.saved.lse;
  const auto& lse_low = call.saved.lse_low;
  if (lse.empty()) return {T{0}, T{0}};
  const index row = sequence().query_row + query + i;
  const T value = lse.at(sequence().batch, head, row);
  if (value == -std::numeric_limits<T>::infinity()) return {T{0}, T{0}};
  return {value, lse_low.empty() ? T{0} : lse_low.at(sequence().batch, head, row)};
}

// Bit c of kept[i] is 1 if dropout keeps key c for query i of the block.
template <class T>
void BackwardTile<T>::KeptBits(std::uint64_t* kept) const {
  const DropoutStream stream = dropout_stream(call.attention.dropout, sequence(), head);
  for (index half = 0; half * kLaneTile < queries; ++half) {
    std::uint64_t* bits = kept + half * kLaneTile;
    std::fill_n(bits, kLaneTile, 0);
    DropoutBits(stream, call.dropout, query + half * kLaneTile, key, keys, bits);
    TransposeBits(bits);
  }
}

template <class T>
void BackwardTile<T>::AddProducts(bool first) {
  const auto keeps = [&](index r, index c) { return call.attention.mask.keeps(site().at(r, c)); };
  const auto keeps_across = [&](index c, index r) { return keeps(r, c); };
  const auto add_down = [&](const T* weights, Rows<const T> b, T* sums) {
    const TileOperands<T> product{.a = Transposed(Rows<const T>(weights, queries, stride)),
                                  .b = b,
                                  .c = {sums, keys, b.columns},
                                  .prefetch = chunk.prefetch};
    if (!first) return AddProduct(product, Along::kLanes, keeps_across);
    // All scores are kept: one product for the whole block.
    TileProduct<Into::kOverwrite>(product);
  };
  add_down(s, packed_d_o(), dv);
  if (!call.has_product()) return;
  add_down(dp, packed_q(), dk);
  const TileOperands<T> across{.a = Rows<const T>(dp, queries, stride),
                               .b = {k, keys, Dp},
                               .c = {chunk.dq.row(head, query), queries, Dp, chunk.dq.row_stride},
                               .prefetch = chunk.prefetch};
  AddProduct(across, Along::kRows, keeps);
}

// C += A x B.
template <class T>
template <class Keeps>
void BackwardTile<T>::AddProduct(TileOperands<T> product, Along along, Keeps&& keeps) {
  Scratch scratch;
  const FiniteOperand<T> operand(product.b, kind == TileKind::kSome, scratch);
  product.b = operand.finite();
  AddParts(product, along);
  operand.ForEachLeftOut([&](index n, const T* row) {
    for (index r = 0; r < product.c.rows; ++r) {
      if (!keeps(r, n)) continue;
      const T weight = product.a(r, n);
      for (index c = 0; c < product.c.columns; ++c) product.c[r][c] += weight * row[c];
    }
  });
}

template <class T>
void BackwardTile<T>::AddParts(const TileOperands<T>& product, Along along) {
  const auto add = [&](Span rows, Span depth) {
    const index row_end = std::min(rows.end, product.c.rows);
    const index depth_end = std::min(depth.end, product.b.rows);
    TileProduct<Into::kAdd>(
        product.rows_slice(rows.begin, row_end).depth_slice(depth.begin, depth_end));
  };
  if (along == Along::kRows) {
    parts.for_each_rows(add);
  } else {
    parts.for_each_lanes(add);
  }
}

template <class T>
void BackwardTile<T>::Finish() {
  const auto& [dq_out, dk_out, dv_out] = call.gradients;
  if (!begun) Clear();
  if (!dk_out.empty()) CopyRows(Rows<const T>(dk, keys, dk_out.width, Dp), key_rows(dk_out));
  if (!dv_out.empty()) CopyRows(Rows<const T>(dv, keys, dv_out.width, Dvp), key_rows(dv_out));
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_BACKWARD_TILE_INL_H_
