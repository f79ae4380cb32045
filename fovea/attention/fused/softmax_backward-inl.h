// SPDX-License-Identifier: Apache-2.0
// Turns the scores of a backward tile into weights, and the gradients of weights into those of
// scores.
#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/tile_cover.h"

#if defined(FOVEA_ATTENTION_FUSED_SOFTMAX_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_SOFTMAX_BACKWARD_INL_H_
#undef FOVEA_ATTENTION_FUSED_SOFTMAX_BACKWARD_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_SOFTMAX_BACKWARD_INL_H_
#endif

#include "fovea/attention/fused/norm-inl.h"
#include "fovea/simd/bits-inl.h"
#include "fovea/simd/math-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

/// Rows are queries, keys run along the lanes.
template <class T>
struct WeightTile {
  index queries, stride;
  T* s;                       ///< [queries][stride] scores, then weights after dropout
  T* dp;                      ///< [queries][stride] gradients of those weights, then of scores
  const T* delta;             ///< [queries]
  const std::uint64_t* kept;  ///< [queries] which keys dropout keeps, a bit each; null: all
  T keep_scale;
};

/// The weight of a score after dropout, and the gradient of the score.
template <class T>
struct WeightAndGradient {
  Vector<T> used, ds;
};

/// The weights and the gradients of the scores x at `lane` of row i. `p` are their weights, and
/// gradient_of(p, dp) the gradient of x, where dp is that of p. Masked scores (-infinity) get 0 for
/// both by selection, so their values and rows may be NaN.
template <bool kMasked, bool kDropout, class T, class GradientOf>
HWY_INLINE WeightAndGradient<T> UseWeight(const WeightTile<T>& tile, index i, index lane,
                                          Vector<T> x, Vector<T> p, GradientOf&& gradient_of) {
  constexpr Tag<T> d;
  // Eq, not Ne, which is false for NaN on some instruction sets: a NaN must be passed on.
  [[maybe_unused]] const auto refused = hn::Eq(x, hn::Set(d, -std::numeric_limits<T>::infinity()));
  if constexpr (kMasked) p = hn::IfThenZeroElse(refused, p);
  auto dp = hn::Load(d, tile.dp + i * tile.stride + lane);
  auto used = p;
  if constexpr (kDropout) {
    const auto keeps = LaneMask<T>(tile.kept[i] >> lane);
    dp = hn::IfThenElseZero(keeps, dp);
    used = hn::IfThenElseZero(keeps, hn::Mul(p, hn::Set(d, tile.keep_scale)));
  }
  auto ds = gradient_of(p, dp);
  if constexpr (kMasked) ds = hn::IfThenZeroElse(refused, ds);
  return {used, ds};
}

/// p = exp2((s - lse) log2 e), ds = p (dp - delta), in place, for softmax; lse_of(i) is the lse of
/// the i-th query. Sigmoid: ds = p (1 - p) dp; none: p = s, ds = dp. kMasked: some scores may be
/// -infinity because they are masked.
template <class Norm, bool kMasked, bool kDropout, class T, class LseOf>
HWY_INLINE void NormBackwardRows(Norm norm, const WeightTile<T>& tile, Span rows, Span lanes,
                                 LseOf&& lse_of) {
  constexpr Tag<T> d;
  const auto by = hn::Set(d, kLog2E<T>);
  for (index i = rows.begin; i < rows.end; ++i) {
    const RowLse<T> row = lse_of(i);
    const auto lse = hn::Set(d, row.value), low = hn::Set(d, row.low * kLog2E<T>);
    const auto delta = hn::Set(d, tile.delta[i]);
    for (index lane = lanes.begin; lane < lanes.end; lane += kLanes<T>) {
      T* const score = tile.s + i * tile.stride + lane;
      const auto x = hn::Load(d, score);
      auto p = x, slope = x;  // d weight / d score; not used for softmax
      if constexpr (Norm::kNeedsLse) {
        p = Exp2OfWeight(d, hn::MulSub(hn::Sub(x, lse), by, low));
      } else {
        const auto weight = WeightOf<T>(norm, x);
        p = weight.weight;
        slope = weight.slope;
      }
      const auto gradient_of = [&](auto weight, auto dp) __attribute__((always_inline)) {
        return Norm::kNeedsLse ? hn::Mul(weight, hn::Sub(dp, delta)) : hn::Mul(slope, dp);
      };
      const auto now = UseWeight<kMasked, kDropout>(tile, i, lane, x, p, gradient_of);
      hn::Store(now.used, d, score);
      hn::Store(now.ds, d, tile.dp + i * tile.stride + lane);
    }
  }
}

/// After NormBackwardRows, for softmax: sets the gradient of a score with weight 1 to 0, as it is
/// if all other weights of the row are 0. With value parts, and with dropout where o is rounded to
/// bfloat16, o and dp are rounded differently, so that dp - delta is not exactly 0. NaN and
/// infinity become NaN.
template <class T>
void ClearWholeWeights(const WeightTile<T>& tile) {
  constexpr Tag<T> d;
  const auto whole = hn::Set(d, tile.keep_scale);
  for (index n = 0; n < tile.queries * tile.stride; n += kLanes<T>) {
    const auto is_whole = hn::Eq(hn::Load(d, tile.s + n), whole);
    if (hn::AllFalse(d, is_whole)) continue;
    const auto ds = hn::Load(d, tile.dp + n);
    hn::Store(hn::IfThenElse(is_whole, hn::Mul(ds, hn::Zero(d)), ds), d, tile.dp + n);
  }
}

template <class Norm, class T, class LseOf>
void NormBackwardAs(Norm norm, const WeightTile<T>& tile, Span rows, Span lanes, bool masked,
                    LseOf&& lse_of) {
  if (tile.kept != nullptr) {
    return NormBackwardRows<Norm, true, true>(norm, tile, rows, lanes, lse_of);
  }
  if (masked) return NormBackwardRows<Norm, true, false>(norm, tile, rows, lanes, lse_of);
  NormBackwardRows<Norm, false, false>(norm, tile, rows, lanes, lse_of);
}

/// In the parts of the tile; all else becomes 0.
template <class T, class LseOf>
void NormBackward(const Norm& norm, const WeightTile<T>& tile, const TileCover& parts, bool masked,
                  LseOf&& lse_of) {
  const auto visit = [&](auto one) {
    parts.for_each_rows(
        [&](Span rows, Span lanes) { NormBackwardAs(one, tile, rows, lanes, masked, lse_of); });
  };
  std::visit(visit, norm);
  parts.for_each_rest([&](Span rows, Span lanes) {
    for (T* values : {tile.s, tile.dp}) fill_lanes<T>(values, tile.stride, rows, lanes, T{0});
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_SOFTMAX_BACKWARD_INL_H_
