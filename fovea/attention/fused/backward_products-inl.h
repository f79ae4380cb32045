// SPDX-License-Identifier: Apache-2.0
// The last three products of a tile of the backward, dV, dK and dQ, and its end.
#include "fovea/attention/fused/tile_cover.h"

#if defined(FOVEA_ATTENTION_FUSED_BACKWARD_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_BACKWARD_PRODUCTS_INL_H_
#undef FOVEA_ATTENTION_FUSED_BACKWARD_PRODUCTS_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_BACKWARD_PRODUCTS_INL_H_
#endif

#include "fovea/attention/fused/backward_tile-inl.h"
#include "fovea/simd/non_finite-inl.h"
#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

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

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_BACKWARD_PRODUCTS_INL_H_
