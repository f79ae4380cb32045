// SPDX-License-Identifier: Apache-2.0
// A tile of the forward, for one instruction set.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/score_tile.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/base/memory.h"

#if defined(FOVEA_ATTENTION_FUSED_FORWARD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_FORWARD_TILE_INL_H_
#undef FOVEA_ATTENTION_FUSED_FORWARD_TILE_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_FORWARD_TILE_INL_H_
#endif

#include "fovea/attention/dropout-inl.h"
#include "fovea/attention/fused/kv_block-inl.h"
#include "fovea/attention/fused/online_softmax-inl.h"
#include "fovea/simd/bits-inl.h"
#include "fovea/simd/non_finite-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/transpose-inl.h"

// Queries in lanes. A tile of 64 queries is transposed once, qt[D][64]; a block of 128 keys is then
//
//   s[key][64] = K row (broadcast) x qt          K is read row by row (KvBlocks)
//   m, l       running maximum and sum           vertical: one lane a query, no horizontal step
//   p[key][64] = exp2((s - m) log2 e)             in place; not s log2 e - m log2 e, whose two
//                                                large terms would be rounded before they cancel
//   o[Dv][64]  = o * alpha + V (broadcast) x p   rescaled when the accumulator is loaded
//
// and o is transposed back at the end. Rows of K and V are read in place, with a stride between
// heads, or from a copy (KvBlocks). For D = Dv = 64 a score costs 256 flops, 128 multiply-adds,
// plus one exp; a step of a product reads 4 vectors and 6 values for 24 vector multiply-adds, so
// the multiply-adds limit the speed. A tile of scores (32 KB) and qt or o (16 KB) lie between L1
// and L2. Short sequences read every row only once or twice and would wait for memory, so the
// products prefetch the rows of the next run.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

template <class T>
struct ForwardTile {
  using W = Wide<T>;
  using In = Operand<T>;

  const KernelCall<T>& call;
  const AttentionOutputs<T>& out;
  const Sequence& sequence;
  KvBlocks<T>& kv;
  Prefetch& prefetch;
  index head;
  index query;       // first query of the tile
  index queries;     // 1 .. kLaneTile
  index stride = 0;  // queries rounded up to whole vectors

  In* qt = nullptr;  // [operands of D][stride], scaled unless they are pairs
  W* s = nullptr;    // [kRowBlock][stride]
  W* o = nullptr;    // [Dv][stride]
  In* p = nullptr;   // [operands of kRowBlock][stride]: weights as pairs, if products read pairs
  // For parts, if products read pairs: the rows as floats, in rows of whole vectors.
  W* wide_q = nullptr;  // [kLaneTile][D]
  W* wide_k = nullptr;  // [kRowBlock][D]
  RowState<W> state = {};
  TileKind kind = TileKind::kAll;  // of the block in s
  TileCover parts{0, 0};           // the parts of that block that the mask can keep
  bool started = false;            // whether o holds a block
  bool rounded = false;            // whether p holds the weights of the block

  index D() const { return call.in.q.width; }
  index Dv() const { return call.in.v.width; }
  Rows<const T> query_rows() const {
    const auto& q = call.in.q;
    return {q.row(sequence.batch, sequence.query_row + query, head), queries, D(), q.length_stride};
  }
  Rows<T> o_rows() const {
    return {out.o.row(sequence.batch, sequence.query_row + query, head), queries, Dv(),
            out.o.length_stride};
  }
  // The range of keys that the mask can keep. Only the keys of the run are available, and a mask
  // may give a wider range for a tile than for the run.
  Span key_span() const {
    const auto [first, last] = call.attention.mask.key_range(sequence, head, query, queries);
    return whole_operands<T>({std::max(first, kv.head().first), std::min(last, kv.end())},
                             kv.end());
  }
  ForwardSizes<T> sizes() const {
    return {widths_of(D(), Dv(), LanesOf<T>()), RoundUpToLanes<W>(queries), call.bias_needs_rows()};
  }
  TileSite site(index key, index keys) const { return {sequence, head, query, queries, key, keys}; }

  // Allocates the scores, which all tiles that run together share. `this` is the first of them and
  // has the most queries.
  void AllocateShared(Scratch& scratch);
  void Allocate(Scratch& scratch);
  bool Scores(index key, index keys);
  // Turns the scores into weights, and shows both to `observers`.
  template <class Observers>
  void Weigh(index key, index keys, Observers& observers);
  void WeighParts();
  void KeptBits(index key, index keys, std::uint64_t* bits) const;
  void DropWeights(index key, index keys);
  void DropPairs(index key, index keys);
  void AddValues(index key, index keys);
  template <class Row>
  void AddLeftOut(const Row& value, index key, index j);
  Rows<const In> Weights(index keys);
  const In* weights_of_block() const {
    if constexpr (kReadsPairs<T>) {
      return p;
    } else {
      return s;
    }
  }
  TileRows<W> RowsOfParts(index key, index keys);
  void Finish();
};

template <class T>
void ForwardTile<T>::AllocateShared(Scratch& scratch) {
  const ForwardSizes<T> allocated = sizes();
  s = scratch.allocate<W>(allocated.s);
  if constexpr (kReadsPairs<T>) {
    p = scratch.allocate<In>(allocated.p);
    wide_k = scratch.allocate<W>(allocated.wide_k);
  }
}

template <class T>
void ForwardTile<T>::Allocate(Scratch& scratch) {
  stride = RoundUpToLanes<W>(queries);
  const ForwardSizes<T> allocated = sizes();
  qt = scratch.allocate<In>(allocated.qt);
  o = scratch.allocate<W>(allocated.o);
  state.stride = stride;
  for (W** lane : {&state.largest, &state.m, &state.l, &state.alpha}) {
    *lane = scratch.allocate<W>(allocated.lane);
  }
  state.Start(call.norm());
  if constexpr (kReadsPairs<T>) {
    PairsToLanes(query_rows(), qt, stride);
    if (!call.bias_needs_rows()) return;
    wide_q = scratch.allocate<W>(allocated.wide_q);
    WidenRows(query_rows(), {wide_q, queries, RoundUpToLanes<W>(D())});
  } else {
    RowsToLanes<T>(query_rows(), queries, qt, stride, Times<T>{call.scale});
  }
}

// The rows of q and k as the parts see them.
template <class T>
TileRows<Wide<T>> ForwardTile<T>::RowsOfParts(index key, index keys) {
  if constexpr (kReadsPairs<T>) {
    if (!call.bias_needs_rows()) return {};
    const index width = RoundUpToLanes<W>(D());
    WidenRows(kv.key_rows(key, keys), {wide_k, keys, width});
    return {{wide_q, queries, D(), width}, {wide_k, keys, D(), width}, call.scale};
  } else {
    return {query_rows(), kv.k(key, keys), call.scale};
  }
}

// Fills s, and `largest` with the largest score of each lane; false if the mask keeps nothing. If
// no score is masked or biased, the product takes the maximum while the scores are in registers. A
// masked score must not count: it may be far larger than the kept ones.
template <class T>
bool ForwardTile<T>::Scores(index key, index keys) {
  kind = call.attention.mask.classify(site(key, keys));
  if (kind == TileKind::kNone) return false;
  parts = cover_of<T>(call.attention.mask, site(key, keys), kind, TileLanes::kQueries, stride);
  constexpr Into kInto = kReadsPairs<T> ? Into::kOverwriteTimes : Into::kOverwrite;
  const TileOperands<W, In> product{.a = kv.k(key, keys),
                                    .b = {qt, operands_of<T>(D()), stride},
                                    .c = {s, keys, stride},
                                    .factor = call.scale,
                                    .maximum = state.largest,
                                    .prefetch = &prefetch};
  std::fill_n(state.largest, stride, std::numeric_limits<W>::lowest());
  if (kind == TileKind::kAll && !call.has_bias()) {
    TileProduct<kInto, LaneMaximum::kTake>(product);
    return true;
  }
  if (call.has_product()) {
    parts.for_each_rows([&](Span rows, Span lanes) {
      TileProduct<kInto>(
          product.rows_slice(rows.begin, rows.end).lanes_slice(lanes.begin, lanes.end));
    });
  } else {
    std::fill_n(s, keys * stride, W{0});
  }
  const ScoreTile<W> tile{s, stride, TileLanes::kQueries};
  transform_scores<W>(call.attention,
                      {site(key, keys), kind, RowsOfParts(key, keys), tile, nullptr, 0});
  parts.for_each_lanes([&](Span lanes, Span rows) { state.TakeBlockMax(s, lanes, rows); });
  return true;
}

template <class T>
template <class Observers>
void ForwardTile<T>::Weigh(index key, index keys, Observers& observers) {
  state.UpdateMax(call.norm());
  observers.keep(s, keys);
  if constexpr (kReadsPairs<T>) {
    const bool drops = call.dropout.active(), softmax = needs_lse(call.norm());
    // Whether the product alone reads the weights, which then need not be floats.
    const bool alone = call.observe->empty() && call.attention.values.empty();
    rounded = softmax && (alone || !drops);
    if (softmax) {
      state.ExpAndSumToPairs(s, keys, p, !alone);
      if (alone && drops) DropPairs(key, keys);
      if (alone) return;
    } else {
      WeighParts();
    }
  } else {
    WeighParts();
  }
  observers.see(s, key, keys, state.alpha);
  if (call.dropout.active()) DropWeights(key, keys);
}

// The scores in the parts become weights, all others 0. Runs of lanes may hold scores that no part
// has: the mask has made those -infinity, so they add nothing.
template <class T>
void ForwardTile<T>::WeighParts() {
  parts.for_each_lanes(
      [&](Span lanes, Span rows) { state.ExpAndSum(call.norm(), s, lanes, rows); });
  parts.for_each_rest([&](Span rows, Span lanes) { fill_lanes<W>(s, stride, rows, lanes, W{0}); });
}

// Bit r of bits[j] is 1 if dropout keeps key + j for the r-th query.
template <class T>
void ForwardTile<T>::KeptBits(index key, index keys, std::uint64_t* bits) const {
  const DropoutStream stream = dropout_stream(call.attention.dropout, sequence, head);
  DropoutBits(stream, call.dropout, query, key, keys, bits);
}

template <class T>
void ForwardTile<T>::DropWeights(index key, index keys) {
  constexpr Tag<W> d;
  std::uint64_t bits[kRowBlock] = {};
  KeptBits(key, keys, bits);
  for (index j = 0; j < keys; ++j) {
    for (index lane = 0; lane < stride; lane += kLanes<W>) {
      W* const weights = s + j * stride + lane;
      const auto kept = LaneMask<W>(bits[j] >> lane);
      hn::Store(hn::IfThenElseZero(kept, hn::Load(d, weights)), d, weights);
    }
  }
}

// Drops weights of p, which are rounded to pairs.
template <class T>
void ForwardTile<T>::DropPairs(index key, index keys) {
  if constexpr (kReadsPairs<T>) {
    std::uint64_t bits[kRowBlock] = {};
    KeptBits(key, keys, bits);
    KeepInPairs(Rows<In>(p, operands_of<T>(keys), stride), bits);
  }
}

// The weights of a block as the product reads them.
template <class T>
Rows<const Operand<T>> ForwardTile<T>::Weights(index keys) {
  if constexpr (kReadsPairs<T>) {
    if (!rounded) PairRows(Rows<const W>(s, keys, stride), {p, operands_of<T>(keys), stride});
  }
  return {weights_of_block(), operands_of<T>(keys), stride};
}

// o = o * alpha + V p.
template <class T>
void ForwardTile<T>::AddValues(index key, index keys) {
  const Rows<const In> v = kv.v(key, keys);
  Scratch scratch;
  const FiniteOperand<In> values(v, kind == TileKind::kSome, scratch);
  const bool leaves_out = values.leaves_out();
  const TileOperands<W, In> product{
      .a = leaves_out ? Transposed(values.finite()) : kv.v_across(key, keys),
      .b = Weights(keys),
      .c = {o, Dv(), stride},
      .per_lane = state.alpha,
      .prefetch = &prefetch};
  const auto of_keys = [](const TileOperands<W, In>& all, index begin, index end) {
    return all.depth_slice(operands_of<T>(begin), operands_of<T>(end));
  };
  const auto add = [&](const TileOperands<W, In>& part) {
    if (started) {
      TileProduct<Into::kScaleAndAdd>(part);
    } else {
      TileProduct<Into::kOverwrite>(part);
    }
  };
  // The keys that all lanes share are one product, since a product of few lanes is slower.
  const Span shared = parts.shared_rows();
  if (shared.begin < shared.end) {
    add(of_keys(product, shared.begin, shared.end));
    parts.for_each_beyond([&](Span lanes, Span rows) {
      TileProduct<Into::kAdd>(
          of_keys(product.lanes_slice(lanes.begin, lanes.end), rows.begin, rows.end));
    });
  } else {
    parts.for_each_lanes([&](Span lanes, Span rows) {
      add(of_keys(product.lanes_slice(lanes.begin, lanes.end), rows.begin, rows.end));
    });
  }
  started = true;
  add_values<W>(call.attention.values, site(key, keys), {s, stride, TileLanes::kQueries},
                {o, Dv(), queries, stride});
  values.ForEachLeftOut([&](index j, const auto& value) { AddLeftOut(value, key, j); });
}

template <class T>
template <class Row>
void ForwardTile<T>::AddLeftOut(const Row& value, index key, index j) {
  const StridedMatrix<In> weights(weights_of_block(), 1, stride);
  for (index r = 0; r < queries; ++r) {
    if (!call.attention.mask.keeps(site(key, 0).at(r, j))) continue;
    const W weight = ValueAt(weights, r, j);
    for (index c = 0; c < Dv(); ++c) o[c * stride + r] += weight * value[c];
  }
}

template <class T>
void ForwardTile<T>::Finish() {
  constexpr Tag<W> d;
  if (!started) std::fill_n(o, Dv() * stride, W{0});
  const auto keep_scale = static_cast<W>(call.dropout.active() ? call.dropout.keep_scale : 1.0);
  HWY_ALIGN W times[kLaneTile];
  for (index lane = 0; lane < stride; lane += kLanes<W>) {
    hn::Store(state.FinalRescale(call.row_norm(head), keep_scale, lane), d, times + lane);
  }
  if constexpr (kReadsPairs<T>) {
    Scratch scratch;
    const Rows<W> rows(scratch.allocate<W>(sizes().rows), queries, Dv(), RoundUpToLanes<W>(Dv()));
    LanesToRows<W>(o, stride, queries, rows, times);
    RoundRows(rows, 1, o_rows());
  } else {
    LanesToRows<T>(o, stride, queries, o_rows(), times);
  }
  const index row = sequence.query_row + query;
  WriteLse(out, sequence.batch, head, {row, row + queries}, call.row_norm(head), state);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_FORWARD_TILE_INL_H_
