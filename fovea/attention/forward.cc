// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fovea/attention/observed_tile.h"
#include "fovea/attention/work.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/forward.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/forward_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void RunTile(ForwardTile<T> tile) {
  Scratch scratch;
  tile.ahead.add(tile.o_rows());
  tile.Allocate(scratch);
  const auto [first, last] =
      tile.call.attention.mask.key_range(tile.sequence, tile.head, tile.query, tile.queries);
  // A mask may say more of the whole run, whose keys are at hand, than of a tile of it.
  const index begin = std::max(first, tile.head_keys.first);
  const index end = std::min(last, tile.head_keys.first + tile.head_keys.k.rows);
  RowState<T>& state = tile.state;
  const Normaliser normaliser = tile.call.normaliser();
  TileObservers<T> observers(*tile.call.observe,
                             {tile.sequence, tile.head, tile.query, tile.queries, state.m, state.l,
                              tile.call.row_norm(tile.head), &tile.call.attention.dropout},
                             tile.stride, scratch);
  for (index key = begin; key < end; key += kRowBlock - key % kRowBlock) {
    const index keys = std::min(kRowBlock - key % kRowBlock, end - key);
    if (!tile.Scores(key, keys)) continue;
    state.RaiseMaximum(normaliser);
    observers.keep(tile.s, keys);
    state.Weigh(normaliser, tile.s, keys);
    observers.see(tile.s, key, keys, state.alpha);
    if (tile.call.dropout.active()) tile.DropWeights(key, keys);
    tile.AddValues(key, keys);
  }
  tile.Finish();
  observers.finish();
}

template <class T>
void RunTiles(const KernelCall<T>& call, const AttentionOutputs<T>& out, const QueryRun& run,
              const QueryRun* next) {
  Prefetch ahead;
  if (next != nullptr) ExpectRun(call, *next, ahead);
  const HeadKeys<T> keys = KeysOfRun(call, run);
  const index last = (run.query_end - 1) / kLaneTile * kLaneTile;
  for (index query = last; query >= run.query_begin; query -= kLaneTile) {
    RunTile(ForwardTile<T>{call, out, run.sequence, keys, ahead, run.head, query,
                           std::min(kLaneTile, run.query_end - query)});
  }
}

void RunTilesF32(const KernelCall<float>& call, const AttentionOutputs<float>& out,
                 const QueryRun& run, const QueryRun* next) {
  RunTiles(call, out, run, next);
}
void RunTilesF64(const KernelCall<double>& call, const AttentionOutputs<double>& out,
                 const QueryRun& run, const QueryRun* next) {
  RunTiles(call, out, run, next);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(RunTilesF32);
HWY_EXPORT(RunTilesF64);

template <>
ForwardKernel<float> forward_kernel() {
  return FOVEA_DISPATCH(RunTilesF32);
}
template <>
ForwardKernel<double> forward_kernel() {
  return FOVEA_DISPATCH(RunTilesF64);
}

}  // namespace fovea
#endif  // HWY_ONCE
