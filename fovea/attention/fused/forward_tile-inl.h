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
// heads. For D = Dv = 64 a score costs 256 flops, 128 multiply-adds, plus one exp; a step of a
// product reads 4 vectors and 6 values for 24 vector multiply-adds, so the multiply-adds limit the
// speed. A tile of scores (32 KB) and qt or o (16 KB) lie between L1 and L2. Short sequences read
// every row only once or twice and would wait for memory, so the products prefetch the rows of the
// next run.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

template <class T>
struct ForwardTile {
  const KernelCall<T>& call;
  const AttentionOutputs<T>& out;
  const Sequence& sequence;
  KvBlocks<T>& kv;
  Prefetch& prefetch;
  index head;
  index query;       // first query of the tile
  index queries;     // 1 .. kLaneTile
  index stride = 0;  // queries rounded up to whole vectors

  T* qt = nullptr;  // [D][stride], scaled
  T* s = nullptr;   // [kRowBlock][stride]
  T* o = nullptr;   // [Dv][stride]
  RowState<T> state = {};
  TileKind kind = TileKind::kAll;  // of the block in s
  TileCover parts{0, 0};           // the parts of that block that the mask can keep
  bool started = false;            // whether o holds a block

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
    return {std::max(first, kv.head().first), std::min(last, kv.end())};
  }
  TileSite site(index key, index keys) const { return {sequence, head, query, queries, key, keys}; }

  // Allocates the scores, which all tiles that run together share. `this` is the first of them and
  // has the most queries.
  void AllocateShared(Scratch& scratch);
  void Allocate(Scratch& scratch);
  bool Scores(index key, index keys);
  void DropWeights(index key, index keys);
  void AddValues(index key, index keys);
  void AddLeftOut(const T* value, index key, index j);
  void Finish();
  void WriteLse();
};

template <class T>
void ForwardTile<T>::AllocateShared(Scratch& scratch) {
  s = scratch.allocate<T>(ForwardSizes(D(), Dv(), RoundUpToLanes<T>(queries)).s);
}

template <class T>
void ForwardTile<T>::Allocate(Scratch& scratch) {
  stride = RoundUpToLanes<T>(queries);
  const ForwardSizes sizes(D(), Dv(), stride);
  qt = scratch.allocate<T>(sizes.qt);
  o = scratch.allocate<T>(sizes.o);
  state.stride = stride;
  for (T** lane : {&state.largest, &state.m, &state.l, &state.alpha}) {
    *lane = scratch.allocate<T>(sizes.lane);
  }
  state.Start(call.norm());
  RowsToLanes<T>(query_rows(), queries, call.scale, qt, stride);
}

// Fills s, and `largest` with the largest score of each lane; false if the mask keeps nothing. If
// no score is masked or biased, the product takes the maximum while the scores are in registers. A
// masked score must not count: it may be far larger than the kept ones.
template <class T>
bool ForwardTile<T>::Scores(index key, index keys) {
  kind = call.attention.mask.classify(site(key, keys));
  if (kind == TileKind::kNone) return false;
  const bool masked = kind == TileKind::kSome;
  parts = masked ? TileCover(call.attention.mask, site(key, keys), TileLanes::kQueries, stride)
                 : TileCover(keys, stride);
  const Rows<const T> k = kv.k(key, keys);
  const TileOperands<T> product{.a = k,
                                .b = {qt, D(), stride},
                                .c = {s, keys, stride},
                                .maximum = state.largest,
                                .prefetch = &prefetch};
  std::fill_n(state.largest, stride, std::numeric_limits<T>::lowest());
  if (kind == TileKind::kAll && !call.has_bias()) {
    TileProduct<Into::kOverwrite, LaneMaximum::kTake>(product);
    return true;
  }
  if (call.has_product()) {
    parts.for_each_rows([&](Span rows, Span lanes) {
      TileProduct<Into::kOverwrite>(
          product.rows_slice(rows.begin, rows.end).lanes_slice(lanes.begin, lanes.end));
    });
  } else {
    std::fill_n(s, keys * stride, T{0});
  }
  const ScoreTile<T> tile{s, stride, TileLanes::kQueries};
  transform_scores<T>(call.attention,
                      {site(key, keys), kind, {query_rows(), k, call.scale}, tile, nullptr, 0});
  state.TakeBlockMax(s, keys);
  return true;
}

template <class T>
void ForwardTile<T>::DropWeights(index key, index keys) {
  constexpr Tag<T> d;
  std::uint64_t bits[kRowBlock] = {};
  const DropoutStream stream = dropout_stream(call.attention.dropout, sequence, head);
  DropoutBits(stream, call.dropout, query, key, keys, bits);
  for (index j = 0; j < keys; ++j) {
    for (index lane = 0; lane < stride; lane += kLanes<T>) {
      T* p = s + j * stride + lane;
      hn::Store(hn::IfThenElseZero(LaneMask<T>(bits[j] >> lane), hn::Load(d, p)), d, p);
    }
  }
}

// o = o * alpha + V p.
template <class T>
void ForwardTile<T>::AddValues(index key, index keys) {
  const Rows<const T> v = kv.v(key, keys);
  Scratch scratch;
  const FiniteOperand<T> values(v, kind == TileKind::kSome, scratch);
  const TileOperands<T> product{.a = Transposed(values.finite()),
                                .b = {s, keys, stride},
                                .c = {o, Dv(), stride},
                                .per_lane = state.alpha,
                                .prefetch = &prefetch};
  const auto add = [&](const TileOperands<T>& part) {
    if (started) {
      TileProduct<Into::kScaleAndAdd>(part);
    } else {
      TileProduct<Into::kOverwrite>(part);
    }
  };
  // What all lanes have is one product; a product of few lanes is slower.
  const Span shared = parts.shared_rows();
  if (shared.begin < shared.end) add(product.depth_slice(shared.begin, shared.end));
  parts.for_each_lanes([&](Span lanes, Span rows) {
    const TileOperands<T> of_lanes = product.lanes_slice(lanes.begin, lanes.end);
    if (shared.begin == shared.end) {
      add(of_lanes.depth_slice(rows.begin, rows.end));
    } else if (shared.end < rows.end) {
      TileProduct<Into::kAdd>(of_lanes.depth_slice(shared.end, rows.end));
    }
  });
  started = true;
  add_values<T>(call.attention.values, site(key, keys), {s, stride, TileLanes::kQueries},
                {o, Dv(), queries, stride});
  values.ForEachLeftOut([&](index j, const T* value) { AddLeftOut(value, key, j); });
}

template <class T>
void ForwardTile<T>::AddLeftOut(const T* value, index key, index j) {
  for (index r = 0; r < queries; ++r) {
    if (!call.attention.mask.keeps(site(key, 0).at(r, j))) continue;
    for (index c = 0; c < Dv(); ++c) o[c * stride + r] += s[j * stride + r] * value[c];
  }
}

template <class T>
void ForwardTile<T>::Finish() {
  constexpr Tag<T> d;
  if (!started) std::fill_n(o, Dv() * stride, T{0});
  const auto keep_scale = static_cast<T>(call.dropout.active() ? call.dropout.keep_scale : 1.0);
  for (index lane = 0; lane < stride; lane += kLanes<T>) {
    const auto by = state.FinalRescale(call.row_norm(head), keep_scale, lane);
    for (index c = 0; c < Dv(); ++c) {
      T* value = o + c * stride + lane;
      hn::Store(hn::Mul(hn::Load(d, value), by), d, value);
    }
  }
  LanesToRows<T>(o, stride, queries, o_rows());
  WriteLse();
}

template <class T>
void ForwardTile<T>::WriteLse() {
  if (out.lse.empty() && out.lse_low.empty()) return;
  const RowNorm<T> norm = call.row_norm(head);
  for (index r = 0; r < queries; ++r) {
    const RowLse<T> lse = norm.lse(state.m[r], state.l[r]);
    const index row = sequence.query_row + query + r;
    if (!out.lse.empty()) out.lse.at(sequence.batch, head, row) = lse.value;
    if (!out.lse_low.empty()) out.lse_low.at(sequence.batch, head, row) = lse.low;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_FORWARD_TILE_INL_H_
