// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/forward.h"

#include <algorithm>
#include <optional>

#include "fovea/attention/fused/columns.h"
#include "fovea/attention/fused/observed_tile.h"
#include "fovea/attention/fused/prefetch.h"
#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/observe/weights.h"
#include "fovea/base/interruption.h"
#include "fovea/base/profile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/fused/forward.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/fused/few_queries-inl.h"
#include "fovea/attention/fused/forward_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

// Prefetches what a run of tiles reads first.
template <class T>
void PrefetchRun(const KernelCall<T>& call, const QueryRun& run, Prefetch& prefetch) {
  const View<const T>& q = call.in.q;
  const HeadKeys<T> keys = keys_of_run(call, run);
  const index first = run.sequence.query_row + run.query_begin;
  prefetch.add(keys.k);
  prefetch.add(Rows<const T>(q.row(run.sequence.batch, first, run.head),
                             run.query_end - run.query_begin, q.width, q.length_stride));
  prefetch.add(keys.v);
}

// A tile with its observers.
template <class T>
class ObservedForward {
 public:
  ObservedForward(const ForwardTile<T>& tile, Scratch& scratch)
      : tile_(tile),
        keys_(tile.key_span()),
        observers_(*tile.call.observe,
                   {tile.sequence, tile.head, tile.query, tile.queries, tile.state.m, tile.state.l,
                    tile.call.row_norm(tile.head), &tile.call.attention.dropout},
                   tile.stride, scratch) {}

  Span keys() const { return keys_; }

  // Adds the keys in [block, block + kRowBlock).
  void AddBlock(index block) {
    const index key = std::max(keys_.begin, block);
    const index keys = std::min(keys_.end, block + kRowBlock) - key;
    if (keys <= 0) return;
    PrefetchBias(key + keys);
    if (!tile_.started) PrefetchBias(key);
    if (!tile_.Scores(key, keys)) return;
    tile_.Weigh(key, keys, observers_);
    tile_.AddValues(key, keys);
  }

  void Finish() {
    tile_.Finish();
    observers_.finish();
  }

 private:
  // Asks for the bias values of the block of keys that begins with `key`.
  void PrefetchBias(index key) {
    const TileSite site = tile_.site(key, std::min(kRowBlock, keys_.end - key));
    if (site.keys <= 0) return;
    for (const auto& part : tile_.call.attention.bias.parts()) {
      part->prefetch_apply(site, tile_.prefetch);
    }
  }

  ForwardTile<T> tile_;
  Span keys_;
  TileObservers<Wide<T>> observers_;
};

// Tiles of some queries of a run. For each block of keys they run one after another.
template <class T>
class TilesTogether {
 public:
  // `tile` is the first, without its buffers; `end`: of the queries.
  TilesTogether(const ForwardTile<T>& tile, index end) : first_(tile) {
    first_.queries = std::min(kLaneTile, end - tile.query);
    first_.AllocateShared(scratch_);
    if (end - tile.query <= kLaneTile) first_.prefetch.add(first_.o_rows());
    for (index query = tile.query; query < end; query += kLaneTile) {
      ForwardTile<T> own = first_;
      own.query = query;
      own.queries = std::min(kLaneTile, end - query);
      own.Allocate(scratch_);
      const Span keys = tiles_[count_++].emplace(own, scratch_).keys();
      keys_ = count_ == 1 ? keys : hull(keys_, keys);
    }
  }

  void Run() {
    for (index block = keys_.begin / kRowBlock * kRowBlock; block < keys_.end; block += kRowBlock) {
      stop_if_interrupted();
      if (count_ > 1) PrefetchBlock(block + kRowBlock);
      for (index n = 0; n < count_; ++n) tiles_[n]->AddBlock(block);
    }
    for (index n = 0; n < count_; ++n) tiles_[n]->Finish();
  }

 private:
  // Asks for the keys and values of the next block. The hardware prefetcher finds rows of one head
  // only if they are side by side, so the first tile would wait long for them.
  void PrefetchBlock(index block) {
    const auto& [first, k, v] = first_.kv.head();
    const index end = std::min(block + kRowBlock, keys_.end);
    if (block >= end) return;
    for (const Rows<const T>& all : {k, v}) {
      first_.prefetch.add(all.slice(block - first, end - first));
    }
  }

  Scratch scratch_;
  ForwardTile<T> first_;
  std::optional<ObservedForward<T>> tiles_[kMostTilesTogether];
  index count_ = 0;
  Span keys_;  // the keys that any of the tiles reads
};

// Computes the tiles of one run. `next` is what the same thread does after it, or null.
template <class T>
void RunTiles(const KernelCall<T>& call, const AttentionOutputs<T>& out, const QueryRun& run,
              const QueryRun* next) {
  Prefetch prefetch;
  Scratch scratch;
  if constexpr (!kReadsPairs<T>) {
    if (takes_few_queries(call, run, LanesOf<T>())) {
      return FewQueries<T>(call, out, run, scratch).Run();
    }
  }
  const HeadKeys<T> head = keys_of_run(call, run);
  const RunSchedule<T> schedule = schedule_of(call, run, head, LanesOf<T>());
  KvBlocks<T> keys(head, schedule.kv, scratch);
  const index together = schedule.together, step = kLaneTile * together;
  // Tiles that run together prefetch their own next block.
  if (next != nullptr && together == 1) PrefetchRun(call, *next, prefetch);
  for (index end = run.query_end; end > run.query_begin;) {
    const index query = run.query_begin + (end - 1 - run.query_begin) / step * step;
    TilesTogether<T>({call, out, run.sequence, keys, prefetch, run.head, query, 0}, end).Run();
    end = query;
  }
}

auto RunTilesKernel() { return PerPrecision{RunTiles<float>, RunTiles<double>}; }

using RunPairs = void (*)(const KernelCall<BFloat16>&, const AttentionOutputs<BFloat16>&,
                          const QueryRun&, const QueryRun*);
RunPairs RunTilesOfPairs() {
#if FOVEA_PAIRS
  return RunTiles<BFloat16>;
#else
  return nullptr;
#endif
}

auto Lanes() { return PerPrecision{LanesOf<float>(), LanesOf<double>()}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(RunTilesKernel);
HWY_EXPORT(RunTilesOfPairs);
HWY_EXPORT(Lanes);

template <class T>
LaneCounts lane_counts() {
  return FOVEA_DISPATCH(Lanes)().of<Wide<T>>();
}

namespace {

template <class T>
auto run_tiles_kernel() {
  if constexpr (kReadsPairs<T>) {
    return FOVEA_DISPATCH(RunTilesOfPairs)();
  } else {
    return FOVEA_DISPATCH(RunTilesKernel)().of<T>();
  }
}

template <class T>
QueryTiles query_tiles_of(const Context& ctx, const LoweredCall<T>& call) {
  const double flops = tile_flops(call.sequences(), call.in());
  return {call.sequences(), call.in().q.heads, flops, ctx.threads()};
}

}  // namespace

template <class T>
void fused_forward(const Context& ctx, const LoweredCall<T>& call, const AttentionOutputs<T>& out) {
  if (Plan* const plan = ctx.plan()) plan->add_thread_bytes(forward_scratch(ctx, call).worker);
  const AttentionInputs<T>& in = call.in();
  Scratch scratch;
  Observe<Wide<T>> observers = call.attention().observe;
  if (!out.weights.empty()) {
    observers = observers + observe::SelectedRows<Wide<T>>(0, in.q.length, out.weights);
  }
  RowSums<Wide<T>> sums;
  const bool columns = sees_columns(observers);
  if (columns) {
    sums = allocate_row_sums(in, scratch);
    observers = observers + keep_row_sums(sums);
  }
  KernelCall<T> kernel_call(call.attention(), in);
  kernel_call.observe = &observers;
  for (const auto& observer : observers.parts()) observer->clear();
  const auto run_tiles = run_tiles_kernel<T>();
  const QueryTiles tiles = query_tiles_of(ctx, call);
  for_each_with_next(ctx, tiles.items(), [&](index item, index then) {
    tiles.for_each_run(item, then, [&](const QueryRun& run, const QueryRun* next) {
      run_tiles(kernel_call, out, run, next);
    });
  });
  if (columns) observe_columns(ctx, kernel_call, call.sequences(), sums);
}

template <class T>
ThreadScratch forward_scratch(const Context& ctx, const LoweredCall<T>& call) {
  const QueryTiles tiles = query_tiles_of(ctx, call);
  const KernelCall<T> kernel_call(call.attention(), call.in());
  const LaneCounts lanes = lane_counts<T>();
  index most = 0;
  for (index item = 0; item < tiles.items(); ++item) {
    tiles.for_each_run(item, [&](const QueryRun& run) {
      if (takes_few_queries(kernel_call, run, lanes)) {
        most = std::max(most, few_sizes(kernel_call, run, lanes).values());
        return;
      }
      const Span span = span_of_keys(kernel_call, run);
      const HeadKeys<T> keys = planned_keys_of(kernel_call, run.sequence, run.head, span);
      most = std::max(most, schedule_of(kernel_call, run, keys, lanes).values());
    });
  }
  const double each = std::max(static_cast<double>(most) * sizeof(Wide<T>),
                               column_bytes(kernel_call, call.sequences()));
  return {each + row_sums_bytes(call.attention(), call.in()), each};
}

#define FOVEA_INSTANTIATE(T)                                                                      \
  template void fused_forward(const Context&, const LoweredCall<T>&, const AttentionOutputs<T>&); \
  template ThreadScratch forward_scratch(const Context&, const LoweredCall<T>&);                  \
  template LaneCounts lane_counts<T>();
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(BFloat16)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
#endif  // HWY_ONCE
