// SPDX-License-Identifier: Apache-2.0
// The forward of a few queries, as in decoding, for one instruction set.
#include <algorithm>
#include <limits>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/fused/score_tile.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/base/interruption.h"
#include "fovea/base/memory.h"

#if defined(FOVEA_ATTENTION_FUSED_FEW_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_FEW_QUERIES_INL_H_
#undef FOVEA_ATTENTION_FUSED_FEW_QUERIES_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_FEW_QUERIES_INL_H_
#endif

#include "fovea/attention/fused/kv_block-inl.h"
#include "fovea/attention/fused/online_softmax-inl.h"
#include "fovea/simd/non_finite-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/reduce-inl.h"
#include "fovea/simd/rows-inl.h"
#include "fovea/simd/transpose-inl.h"

// A tile with queries in its lanes computes whole vectors of them, also for one query. Here the
// lanes are keys where scores are made, and columns of V where values are added:
//
//   kt[D][keys]   = K transposed, 64 keys at a time: 16 KB of the first cache for D = 64
//   s[q][keys]    = q row (broadcast) x kt
//   p[q][keys]    = exp2((s - m) log2 e), in place
//   o[q][Dv]      = o * alpha + p row (broadcast) x V
//
// Every sum has the order that it has in ForwardTile, so the bits are the same: a token that is
// computed alone, with its cache, equals the one that is computed among all others.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

template <class T>
class FewQueries {
 public:
  FewQueries(const KernelCall<T>& call, const AttentionOutputs<T>& out, const QueryRun& run,
             Scratch& scratch)
      : call_(call), out_(out), run_(run), keys_(keys_of_run(call, run)) {
    const FewSizes sizes = few_sizes(call, run, LanesOf<T>());
    const index width = RoundUpToLanes<T>(call.in.v.width);
    q_ = ScaledRows<T>(query_rows(), call.scale, scratch);
    kt_ = scratch.allocate<T>(sizes.kt);
    s_ = {scratch.allocate<T>(sizes.s), queries(), kRowBlock};
    o_ = {scratch.allocate<T>(sizes.o), queries(), width};
    if (sizes.v > 0) v_ = {scratch.allocate<T>(sizes.v), kRowBlock, width};
    state_.stride = RoundUpToLanes<T>(queries());
    for (T** lane : {&state_.largest, &state_.m, &state_.l, &state_.alpha}) {
      *lane = scratch.allocate<T>(sizes.lane);
    }
    state_.Start(call.norm());
    std::fill_n(state_.largest, state_.stride, std::numeric_limits<T>::lowest());
  }

  void Run() {
    const index end = keys_.first + keys_.k.rows;
    for (index key = keys_.first; key < end;) {
      stop_if_interrupted();
      const index next = std::min(end, (key / kRowBlock + 1) * kRowBlock);
      if (Scores(key, next - key)) {
        Weigh(next - key);
        AddValues(key, next - key);
      }
      key = next;
    }
    Finish();
  }

 private:
  index queries() const { return run_.query_end - run_.query_begin; }
  TileSite site(index key, index keys) const {
    return {run_.sequence, run_.head, run_.query_begin, queries(), key, keys};
  }
  Rows<const T> query_rows() const {
    const auto& q = call_.in.q;
    return {q.row(run_.sequence.batch, run_.sequence.query_row + run_.query_begin, run_.head),
            queries(), q.width, q.length_stride};
  }
  Rows<const T> Keys(const Rows<const T>& all, index key, index keys) const {
    return all.slice(key - keys_.first, key - keys_.first + keys);
  }
  bool Scores(index key, index keys);
  void Weigh(index keys);
  void AddValues(index key, index keys);
  Rows<const T> Values(index key, index keys);
  void Finish();

  const KernelCall<T>& call_;
  const AttentionOutputs<T>& out_;
  const QueryRun& run_;
  HeadKeys<T> keys_;
  Rows<T> q_;          // [queries, D rounded up to whole vectors], scaled
  T* kt_ = nullptr;    // [D][kTurned]
  Rows<T> s_;          // [queries, kRowBlock]
  Rows<T> o_;          // [queries, Dv rounded up to whole vectors]
  Rows<T> v_;          // a block of values in whole vectors, where those of the caller are not
  RowState<T> state_;  // lanes are queries
  TileKind kind_ = TileKind::kAll;
  bool started_ = false;  // whether o holds a block
};

// Fills s, and `largest`; false if the mask keeps nothing.
template <class T>
bool FewQueries<T>::Scores(index key, index keys) {
  kind_ = call_.attention.mask.classify(site(key, keys));
  if (kind_ == TileKind::kNone) return false;
  const Rows<const T> k = Keys(keys_.k, key, keys);
  if (call_.has_product()) {
    for (index j = 0; j < keys; j += kTurned) {
      const index count = std::min(kTurned, keys - j), lanes = RoundUpToLanes<T>(count);
      RowsToLanes<T>(k.slice(j, j + count), count, kt_, lanes);
      TileProduct<Into::kOverwrite>(
          TileOperands<T, T>{.a = {q_.data, q_.stride, 1},
                             .b = {kt_, k.columns, lanes},
                             .c = {s_[0] + j, queries(), lanes, kRowBlock}});
    }
  } else {
    std::fill_n(s_.data, queries() * kRowBlock, T{0});
  }
  const ScoreTile<T> tile{s_.data, kRowBlock, TileLanes::kKeys};
  transform_scores<T>(call_.attention,
                      {site(key, keys), kind_, {query_rows(), k, call_.scale}, tile, nullptr, 0});
  for (index r = 0; r < queries(); ++r) state_.largest[r] = Max(s_[r], keys);
  return true;
}

// The scores become weights.
template <class T>
void FewQueries<T>::Weigh(index keys) {
  constexpr Tag<T> d;
  state_.UpdateMax(call_.norm());
  const auto by = hn::Set(d, kLog2E<T>);
  for (index r = 0; r < queries(); ++r) {
    T* const s = s_[r];
    const auto most = hn::Set(d, state_.m[r]);
    for (index j = 0; j < keys; j += kLanes<T>) {
      const auto below = hn::Sub(hn::Load(d, s + j), most);
      hn::Store(Exp2OfWeight<5>(d, hn::Mul(below, by)), d, s + j);
    }
  }
  // One key after another, as in a tile.
  for (index r = 0; r < queries(); ++r) {
    const T* const p = s_[r];
    T sum = state_.l[r];
    for (index j = 0; j < keys; ++j) sum += p[j];
    state_.l[r] = sum;
  }
}

// The values in rows of whole vectors.
template <class T>
Rows<const T> FewQueries<T>::Values(index key, index keys) {
  const Rows<const T> v = Keys(keys_.v, key, keys);
  if (v_.data == nullptr) return v;
  PackRows(v, T{1}, v_.slice(0, keys));
  return Rows<const T>(v_).slice(0, keys);
}

// o = o * alpha + p V.
template <class T>
void FewQueries<T>::AddValues(index key, index keys) {
  Scratch scratch;
  const FiniteOperand<T> values(Values(key, keys), kind_ == TileKind::kSome, scratch);
  const TileOperands<T, T> product{.a = {s_.data, kRowBlock, 1},
                                   .b = {values.finite().data, keys, values.finite().stride},
                                   .c = o_};
  if (started_) {
    for (index r = 0; r < queries(); ++r) {
      for (index c = 0; c < o_.columns; ++c) o_[r][c] *= state_.alpha[r];
    }
    TileProduct<Into::kAdd>(product);
  } else {
    TileProduct<Into::kOverwrite>(product);
  }
  started_ = true;
  values.ForEachLeftOut([&](index j, const auto& value) {
    for (index r = 0; r < queries(); ++r) {
      if (!call_.attention.mask.keeps(site(key, 0).at(r, j))) continue;
      for (index c = 0; c < call_.in.v.width; ++c) o_[r][c] += s_[r][j] * value[c];
    }
  });
}

template <class T>
void FewQueries<T>::Finish() {
  constexpr Tag<T> d;
  if (!started_) std::fill_n(o_.data, o_.rows * o_.stride, T{0});
  const RowNorm<T> norm = call_.row_norm(run_.head);
  HWY_ALIGN T times[kLaneTile];
  for (index lane = 0; lane < state_.stride; lane += kLanes<T>) {
    hn::Store(state_.FinalRescale(norm, T{1}, lane), d, times + lane);
  }
  const index row = run_.sequence.query_row + run_.query_begin;
  for (index r = 0; r < queries(); ++r) {
    T* const o = out_.o.row(run_.sequence.batch, row + r, run_.head);
    for (index c = 0; c < call_.in.v.width; ++c) o[c] = o_[r][c] * times[r];
  }
  WriteLse(out_, run_.sequence.batch, run_.head, {row, row + queries()}, norm, state_);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_FEW_QUERIES_INL_H_
