// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/forward.h"

#include <algorithm>

#include "fovea/attention/fused/columns.h"
#include "fovea/attention/fused/prefetch.h"
#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/observe/selected_rows.h"

namespace fovea::detail {

namespace {

template <class T>
QueryTiles query_tiles_of(const Context& ctx, const LoweredCall<T>& call) {
  const double flops = tile_flops(call.sequences(), call.in());
  return {call.sequences(), call.in().q.heads, flops, ctx.threads()};
}

}  // namespace

template <class T>
void fused_forward(const Context& ctx, const LoweredCall<T>& call, const AttentionOutputs<T>& out) {
  const AttentionInputs<T>& in = call.in();
  Scratch scratch;
  RowSums<T> sums;
  Observe<T> observers = call.attention().observe;
  if (!out.weights.empty()) {
    observers = observers + observe::SelectedRows<T>(0, in.q.length, out.weights);
  }
  const bool columns = sees_columns(observers);
  if (columns) {
    sums = allocate_row_sums(in, scratch);
    observers = observers + keep_row_sums(sums);
  }
  KernelCall<T> kernel_call(call.attention(), in);
  kernel_call.observe = &observers;
  for (const auto& observer : observers.parts()) observer->clear();
  const ForwardKernel<T> run_tiles = forward_kernel<T>();
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
      const auto [first, last] = key_range(call.attention().mask, run);
      most = std::max(most, schedule_of(kernel_call, run, last - first, lanes).values());
    });
  }
  const double each = static_cast<double>(most) * sizeof(T);
  return {each + row_sums_bytes(call.attention(), call.in()), each};
}

#define FOVEA_INSTANTIATE(T)                                                                      \
  template void fused_forward(const Context&, const LoweredCall<T>&, const AttentionOutputs<T>&); \
  template ThreadScratch forward_scratch(const Context&, const LoweredCall<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
