// SPDX-License-Identifier: Apache-2.0
// A tile of the backward, for one instruction set.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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
Widths WidthsOf(const BackwardCall<T>& call) {
  const index D = call.in.q.width, Dv = call.in.v.width;
  return {D, Dv, RoundUpToLanes<Wide<T>>(D), RoundUpToLanes<Wide<T>>(Dv)};
}

// One tile of keys, for one head at a time.
template <class T>
struct BackwardTile {
  using W = Wide<T>;
  using In = Operand<T>;

  const BackwardCall<T>& call;
  const BackwardChunk<T>& chunk;
  index key;         // first key of the tile
  index keys;        // 1 .. kLaneTile
  index stride = 0;  // keys rounded up to whole vectors
  index Dp = 0;      // D and Dv rounded up to whole vectors
  index Dvp = 0;

  In* kt = nullptr;  // [operands of D][stride]
  In* vt = nullptr;  // [operands of Dv][stride], scaled by 1 / (1 - p) of dropout unless pairs
  In* k = nullptr;   // [operands of keys][Dp], scaled unless pairs
  // Shared by all tiles that run together:
  W* s = nullptr;       // [kRowBlock][stride], then p
  W* dp = nullptr;      // [kRowBlock][stride], then ds
  W* inputs = nullptr;  // the scores that each bias part reads, one tile per part
  // If products read pairs: p and ds rounded, along the queries and along the keys.
  In* p_down = nullptr;    // [operands of kRowBlock][stride]
  In* ds_down = nullptr;   // [operands of kRowBlock][stride]
  In* ds_along = nullptr;  // [kRowBlock][operands of stride]
  W* wide_q = nullptr;     // [kRowBlock][Dp], for parts that read rows
  W* wide_d_o = nullptr;   // [kRowBlock][Dvp], for them
  W* wide_k = nullptr;     // [kLaneTile][Dp], for them; of this tile alone

  W* dk = nullptr;     // [stride][Dp]
  W* dv = nullptr;     // [stride][Dvp]
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
  // The block's rows of q and d_o: left operands, read along their width.
  Rows<const In> q_along() const {
    const index width = PackedWidths<T>(WidthsOf(call)).q;
    return {chunk.packed.q + chunk.packed.slot(head, query) * width, queries,
            operands_of<T>(call.in.q.width), width};
  }
  Rows<const In> d_o_along() const {
    const index width = PackedWidths<T>(WidthsOf(call)).d_o;
    return {chunk.packed.d_o + chunk.packed.slot(head, query) * width, queries,
            operands_of<T>(call.in.v.width), width};
  }
  // q and dO as right operands, in whole vectors, read along the queries.
  Rows<const In> q_down() const { return Down(chunk.packed.q_down, Dp); }
  Rows<const In> d_o_down() const { return Down(chunk.packed.d_o_down, Dvp); }
  Rows<const In> Down(const In* all, index width) const {
    const index first = operands_of<T>(chunk.packed.slot(head, query));
    return {all + first * width, operands_of<T>(queries), width};
  }
  // The rows of the block that the parts read.
  Rows<const W> d_o_of_parts() const;
  TileRows<W> RowsOfParts() const;
  bool has_parts() const { return call.has_parts(); }
  W keep_scale() const {
    return static_cast<W>(call.dropout.active() ? call.dropout.keep_scale : 1.0);
  }
  Rows<W> dq_rows() const {
    return {chunk.dq.row(head, query), queries, call.in.q.width, chunk.dq.row_stride};
  }

  BackwardSizes<T> sizes() const {
    return {WidthsOf(call), keys, RoundUpToLanes<W>(keys), parts_with_scores(call.attention.bias),
            call.needs_rows_of_parts()};
  }
  // Allocates what all tiles that run together share. `this` is the first of them and has the most
  // keys.
  void AllocateShared(Scratch& scratch);
  void Allocate(Scratch& scratch);
  void StartHead(index h);
  void AddBlock(index block);
  void PrefetchBias() const;
  void RunBlock();
  enum class Along { kRows, kLanes };  // the direction in which a product reads A
  void WeighScores();
  void KeptBits(std::uint64_t* kept) const;
  bool Begin();
  void Clear();
  void AddProducts(bool first);
  void RoundWeights();
  template <class Keeps>
  void AddProduct(TileOperands<W, In> product, Along along, bool first, Keeps&& keeps);
  void AddParts(const TileOperands<W, In>& product, Along along, bool first);
  void Finish();
};

template <class T>
void BackwardTile<T>::AllocateShared(Scratch& scratch) {
  const BackwardSizes<T> allocated = sizes();
  s = scratch.allocate<W>(allocated.s);
  dp = scratch.allocate<W>(allocated.s);
  inputs = scratch.allocate<W>(allocated.inputs);
  if constexpr (kReadsPairs<T>) {
    for (In** pairs : {&p_down, &ds_down, &ds_along}) {
      *pairs = scratch.allocate<In>(allocated.pairs);
    }
    wide_q = scratch.allocate<W>(allocated.wide_q);
    wide_d_o = scratch.allocate<W>(allocated.wide_d_o);
  }
}

template <class T>
void BackwardTile<T>::Allocate(Scratch& scratch) {
  stride = RoundUpToLanes<W>(keys);
  const Widths widths = WidthsOf(call);
  Dp = widths.Dp;
  Dvp = widths.Dvp;
  const BackwardSizes<T> allocated = sizes();
  kt = scratch.allocate<In>(allocated.kt);
  vt = scratch.allocate<In>(allocated.vt);
  k = scratch.allocate<In>(allocated.k);
  dk = scratch.allocate<W>(allocated.dk);
  dv = scratch.allocate<W>(allocated.dv);
  if constexpr (kReadsPairs<T>) {
    PairsToLanes(key_rows(call.in.k), kt, stride);
    PairsToLanes(key_rows(call.in.v), vt, stride);
    PairRows(key_rows(call.in.k), Rows<In>(k, operands_of<T>(keys), Dp));
    if (!call.needs_rows_of_parts()) return;
    wide_k = scratch.allocate<W>(allocated.wide_k);
    WidenRows(key_rows(call.in.k), {wide_k, keys, Dp});
  } else {
    RowsToLanes<T>(key_rows(call.in.k), keys, kt, stride);
    // The factor 1 / (1 - p) of dropout is applied here, once, as the forward applied it to o.
    RowsToLanes<T>(key_rows(call.in.v), keys, vt, stride, Times<T>{keep_scale()});
    PackRows(key_rows(call.in.k), call.scale, Rows<T>(k, keys, Dp));
  }
}

template <class T>
Rows<const Wide<T>> BackwardTile<T>::d_o_of_parts() const {
  if constexpr (kReadsPairs<T>) {
    if (call.needs_rows_of_parts()) WidenRows(query_rows(call.saved.d_o), {wide_d_o, queries, Dvp});
    return {wide_d_o, queries, call.in.v.width, Dvp};
  } else {
    return d_o_along();
  }
}

template <class T>
TileRows<Wide<T>> BackwardTile<T>::RowsOfParts() const {
  if constexpr (kReadsPairs<T>) {
    if (!call.needs_rows_of_parts()) return {};
    const index D = call.in.q.width;
    WidenRows(query_rows(call.in.q), {wide_q, queries, Dp});
    return {{wide_q, queries, D, Dp}, {wide_k, keys, D, Dp}, call.scale};
  } else {
    return {query_rows(call.in.q), key_rows(call.in.k), call.scale, q_along()};
  }
}

template <class T>
void BackwardTile<T>::StartHead(index h) {
  head = h;
  const auto [first, last] = call.attention.mask.query_range(sequence(), head, key, keys);
  // The chunk has memory only for its own range of queries, and a mask may give a wider range for a
  // tile than for the chunk.
  seen = whole_operands<T>({std::max(first, chunk.query_begin), std::min(last, chunk.query_end)},
                           chunk.query_end);
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
  parts = cover_of<T>(call.attention.mask, site(), kind, TileLanes::kKeys, stride);
  PrefetchBias();
  constexpr Into kInto = kReadsPairs<T> ? Into::kOverwriteTimes : Into::kOverwrite;
  const auto product_of_parts = [&](Rows<const In> rows_of_a, const In* lanes_of_b, W factor,
                                    W* c) {
    const TileOperands<W, In> whole{.a = rows_of_a,
                                    .b = {lanes_of_b, rows_of_a.columns, stride},
                                    .c = {c, queries, stride},
                                    .factor = factor,
                                    .prefetch = chunk.prefetch};
    parts.for_each_rows([&](Span rows, Span lanes) {
      TileProduct<kInto>(
          whole.rows_slice(rows.begin, rows.end).lanes_slice(lanes.begin, lanes.end));
    });
  };
  if (call.has_product()) {
    product_of_parts(q_along(), kt, call.scale, s);
  } else {
    std::fill_n(s, queries * stride, W{0});
  }
  product_of_parts(d_o_along(), vt, keep_scale(), dp);
  const Values<W>& values = call.attention.values;
  const ScoreTile<W> weights{s, stride, TileLanes::kKeys}, dweights{dp, stride, TileLanes::kKeys};
  const Rows<const W> d_o = d_o_of_parts();
  pull_value_weights<W>(values, site(), d_o, keep_scale(), dweights);
  const TileRows<W> rows = RowsOfParts();
  const index tile_size = kRowBlock * stride;
  transform_scores<W>(call.attention, {site(), kind, rows, weights, inputs, tile_size});
  WeighScores();
  const bool first = Begin();
  double* const sums = chunk.sums_of(head);
  pull_value_parameters<W>(values, site(), {s, stride, TileLanes::kKeys}, d_o,
                           sums + gradient_size_of(call.attention.bias));
  if (call.has_bias()) {
    const Rows<W> dk_rows(dk, keys, call.in.q.width, Dp);
    pull_scores<W>(call.attention, {site(), kind, rows, dweights, inputs, tile_size},
                   {dq_rows(), dk_rows, sums});
  }
  RoundWeights();
  AddProducts(first);
}

// Rounds p and ds to what the products read, unless WeighScores has done so.
template <class T>
void BackwardTile<T>::RoundWeights() {
  if constexpr (kReadsPairs<T>) {
    const index pairs = operands_of<T>(queries), along = operands_of<T>(stride);
    if (has_parts() || !needs_lse(call.norm())) {
      const Rows<const W> p_rows(s, queries, stride), ds_rows(dp, queries, stride);
      PairRows(p_rows, {p_down, pairs, stride});
      PairRows(ds_rows, {ds_down, pairs, stride});
      RoundInOrder(ds_rows, {ds_along, queries, along});
    }
    // The second half of the last pair of odd keys meets the zeros beyond them, and may be NaN.
    if (keys % 2 == 0) return;
    for (index i = 0; i < queries; ++i) ds_along[i * along + keys / 2] &= 0xffffu;
  }
}

// Before the products of a block: whether they are the first of the tile, and overwrite dk and dv.
// Biases add to dk before them, so with biases both are cleared instead.
template <class T>
bool BackwardTile<T>::Begin() {
  const bool first = !std::exchange(begun, true);
  if (first && call.has_bias()) Clear();
  return first && !call.has_bias();
}

template <class T>
void BackwardTile<T>::Clear() {
  std::fill_n(dk, stride * Dp, W{0});
  std::fill_n(dv, stride * Dvp, W{0});
}

// s becomes p (after dropout), dp becomes ds.
template <class T>
void BackwardTile<T>::WeighScores() {
  static_assert(kRowBlock % kLaneTile == 0);
  std::uint64_t kept[kRowBlock];
  const bool drops = call.dropout.active(), masked = kind == TileKind::kSome || call.has_bias();
  if (drops) KeptBits(kept);
  const QueryNumbers<W> numbers = chunk.numbers_of(head).from(query);
  const WeightTile<W> tile{queries,     stride, s, dp, numbers.delta, drops ? kept : nullptr,
                           keep_scale()};
  const auto lse_of = [&](index i) { return numbers.lse[i]; };
  // With dropout, the factor of o has been rounded too if o is rounded.
  const bool differ = !call.attention.values.empty() || (call.rounded_o && drops);
  const bool joined = differ && call.saved.d_lse.empty();
#if FOVEA_PAIRS
  if constexpr (kReadsPairs<T>) {
    if (needs_lse(call.norm()) && !has_parts()) {
      const float of_whole = joined ? 0 : 1;
      return SoftmaxBackwardToPairs(tile, masked, lse_of, of_whole, {p_down, ds_down, ds_along});
    }
  }
#endif
  NormBackward<W>(call.norm(), tile, parts, masked, lse_of);
  if (joined && needs_lse(call.norm())) ClearWholeWeights(tile);
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

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_BACKWARD_TILE_INL_H_
