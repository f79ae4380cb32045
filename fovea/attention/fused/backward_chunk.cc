// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/backward_chunk.h"

#include <algorithm>
#include <optional>

#include "fovea/attention/fused/tile_cover.h"
#include "fovea/base/interruption.h"
#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/fused/backward_chunk.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/fused/backward_tile-inl.h"
#include "fovea/simd/non_finite-inl.h"
#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

// The last three products of a tile of the backward, dV, dK and dQ, and its end.

template <class T>
void BackwardTile<T>::AddProducts(bool first) {
  const auto keeps = [&](index r, index c) { return call.attention.mask.keeps(site().at(r, c)); };
  const auto keeps_across = [&](index c, index r) { return keeps(r, c); };
  const auto add_down = [&](const In* weights, Rows<const In> b, W factor, W* sums) {
    const Rows<const In> weight_rows(weights, operands_of<T>(queries), stride);
    const TileOperands<W, In> product{.a = Transposed(weight_rows),
                                      .b = b,
                                      .c = {sums, keys, b.columns},
                                      .factor = kReadsPairs<T> ? factor : 1,
                                      .prefetch = chunk.prefetch};
    AddProduct(product, Along::kLanes, first, keeps_across);
  };
  const In *p = p_down, *ds = ds_down, *ds_rows = ds_along;
  if constexpr (!kReadsPairs<T>) p = s, ds = ds_rows = dp;
  add_down(p, d_o_down(), 1, dv);
  if (!call.has_product()) return;
  add_down(ds, q_down(), call.scale, dk);
  const TileOperands<W, In> across{
      .a = Rows<const In>(ds_rows, queries, operands_of<T>(stride)),
      .b = {k, operands_of<T>(keys), Dp},
      .c = {chunk.dq.row(head, query), queries, Dp, chunk.dq.row_stride},
      .factor = kReadsPairs<T> ? call.scale : 1,
      .prefetch = chunk.prefetch};
  AddProduct(across, Along::kRows, false, keeps);
}

// C += A x B, or if it is the first product of these sums C = A x B.
template <class T>
template <class Keeps>
void BackwardTile<T>::AddProduct(TileOperands<W, In> product, Along along, bool first,
                                 Keeps&& keeps) {
  Scratch scratch;
  const FiniteOperand<In> operand(product.b, kind == TileKind::kSome, scratch);
  product.b = operand.finite();
  AddParts(product, along, first);
  operand.ForEachLeftOut([&](index n, const auto& row) {
    for (index r = 0; r < product.c.rows; ++r) {
      if (!keeps(r, n)) continue;
      const W weight = product.factor * ValueAt(product.a, r, n);
      for (index c = 0; c < product.c.columns; ++c) product.c[r][c] += weight * row[c];
    }
  });
}

// `first` needs Along::kLanes: that visits also lanes without rows, whose sums become 0.
template <class T>
void BackwardTile<T>::AddParts(const TileOperands<W, In>& product, Along along, bool first) {
  const auto add = [&](Span rows, Span depth) {
    const index row_end = std::min(rows.end, product.c.rows);
    const index depth_end = std::min(operands_of<T>(depth.end), product.b.rows);
    const auto part =
        product.rows_slice(rows.begin, row_end).depth_slice(operands_of<T>(depth.begin), depth_end);
    if (first) {
      TileProduct<kReadsPairs<T> ? Into::kOverwriteTimes : Into::kOverwrite>(part);
    } else {
      TileProduct<kReadsPairs<T> ? Into::kAddTimes : Into::kAdd>(part);
    }
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
  const auto store = [&](const W* sums, index width, const View<T>& out) {
    if (out.empty()) return;
    const Rows<const W> rows(sums, keys, out.width, width);
    if constexpr (kReadsPairs<T>) {
      RoundRows(rows, 1, key_rows(out));
    } else {
      CopyRows(rows, key_rows(out));
    }
  };
  store(dk, Dp, dk_out);
  store(dv, Dvp, dv_out);
}

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
