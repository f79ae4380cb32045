// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/backward_chunk.h"

#include <algorithm>
#include <optional>

#include "fovea/base/interruption.h"
#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/fused/backward_chunk.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/fused/backward_products-inl.h"
#include "fovea/attention/fused/backward_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void PackQueries(const BackwardCall<T>& call, const Sequence& sequence,
                 const PackedQueries<T>& packed, const PackRange& range) {
  const auto& [head, begin, end] = range;
  const Widths widths = WidthsOf(call);
  const PackedWidths<T> packed_widths(widths);
  const index slot = packed.slot(head, begin), rows = end - begin;
  const auto rows_of = [&, h = head, i = begin](const View<const T>& view) {
    return Rows<const T>(view.row(sequence.batch, sequence.query_row + i, h), rows, view.width,
                         view.length_stride);
  };
  const Rows<Operand<T>> q(packed.q + slot * packed_widths.q, rows, packed_widths.q);
  const Rows<Operand<T>> d_o(packed.d_o + slot * packed_widths.d_o, rows, packed_widths.d_o);
  if constexpr (kReadsPairs<T>) {
    const auto down = [&, n = slot](Operand<T>* all, index width) {
      return Rows<Operand<T>>(all + operands_of<T>(n) * width, operands_of<T>(rows), width);
    };
    CopyAsPairs(rows_of(call.in.q), q);
    CopyAsPairs(rows_of(call.saved.d_o), d_o);
    PairRows(rows_of(call.in.q), down(packed.q_down, widths.Dp));
    PairRows(rows_of(call.saved.d_o), down(packed.d_o_down, widths.Dvp));
  } else {
    PackRows(rows_of(call.in.q), call.scale, q);
    PackRows(rows_of(call.saved.d_o), T{1}, d_o);
  }
}

// Runs the tiles of a chunk together: for each block of queries, one tile after another.
template <class T>
void RunTogether(BackwardTile<T> tile, index end) {
  Scratch scratch;
  std::optional<BackwardTile<T>> tiles[kMostTilesTogether];
  index count = 0;
  tile.keys = std::min(kLaneTile, end - tile.key);
  tile.AllocateShared(scratch);
  for (; tile.key < end; tile.key += kLaneTile) {
    tile.keys = std::min(kLaneTile, end - tile.key);
    tiles[count++].emplace(tile).Allocate(scratch);
  }
  for (index head = tile.chunk.first_head; head < tile.chunk.last_head; ++head) {
    Span seen{tile.chunk.query_end, tile.chunk.query_begin};
    for (index n = 0; n < count; ++n) {
      tiles[n]->StartHead(head);
      seen = hull(seen, tiles[n]->seen);
    }
    for (index block = seen.begin / kRowBlock * kRowBlock; block < seen.end; block += kRowBlock) {
      stop_if_interrupted();
      for (index n = 0; n < count; ++n) tiles[n]->AddBlock(block);
    }
  }
  for (index n = 0; n < count; ++n) tiles[n]->Finish();
}

template <class T>
void RunChunk(const BackwardCall<T>& call, const BackwardChunk<T>& chunk) {
  const index step =
      kLaneTile * key_tiles_together<T>(WidthsOf(call), chunk.query_end - chunk.query_begin);
  for (index key = chunk.key_begin; key < chunk.key_end; key += step) {
    RunTogether(BackwardTile<T>{call, chunk, key, 0}, std::min(key + step, chunk.key_end));
  }
}

template <class T>
BackwardKernels<T> KernelsFor() {
  return {RunChunk<T>, RowDots<T>, PackQueries<T>, nullptr};
}
auto Kernels() { return PerPrecision{KernelsFor<float>(), KernelsFor<double>()}; }

BackwardKernels<BFloat16> KernelsOfPairs() {
#if FOVEA_PAIRS
  return {RunChunk<BFloat16>, RowDots, PackQueries<BFloat16>, RoundRows};
#else
  return {};
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(Kernels);
HWY_EXPORT(KernelsOfPairs);

template <class T>
BackwardKernels<T> backward_kernels() {
  if constexpr (kReadsPairs<T>) {
    return FOVEA_DISPATCH(KernelsOfPairs)();
  } else {
    return FOVEA_DISPATCH(Kernels)().of<T>();
  }
}

template BackwardKernels<float> backward_kernels();
template BackwardKernels<double> backward_kernels();
template BackwardKernels<BFloat16> backward_kernels();

}  // namespace fovea::detail
#endif  // HWY_ONCE
