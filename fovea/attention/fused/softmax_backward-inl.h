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
#include "fovea/simd/pairs-inl.h"
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

#if FOVEA_PAIRS

// In one pass, with results rounded to the pairs of bfloat16 that products read.

/// Where p (after dropout) and ds go: as pairs along the queries [queries / 2][stride], and along
/// the keys [queries][stride / 2].
struct WeightPairs {
  BFloat16Pair *p_down, *ds_down, *ds_along;
};

/// s and dp of the tile stay. kDropout: the gradient of a score with weight 1 is multiplied by
/// `of_whole`.
template <bool kMasked, bool kDropout>
class SoftmaxToPairs {
 public:
  SoftmaxToPairs(const WeightTile<float>& tile, float of_whole, const WeightPairs& to)
      : tile_(tile), to_(to), of_whole_(of_whole) {}

  /// lse_of(i) is the lse of the i-th query.
  template <class LseOf>
  void Run(LseOf&& lse_of) const {
    for (index i = 0; i < tile_.queries; i += 2) {
      const bool both = i + 1 < tile_.queries;
      const Row first = RowOf(i, lse_of(i)), second = both ? RowOf(i + 1, lse_of(i + 1)) : first;
      for (index lane = 0; lane < tile_.stride; lane += 2 * kN) {
        const bool wide = lane + kN < tile_.stride;
        const TwoRows low = WeighTwo(i, first, second, both, lane);
        const TwoRows high = wide ? WeighTwo(i, first, second, both, lane + kN) : low;
        StoreAlong(i, lane, low.first, high.first);
        if (both) StoreAlong(i + 1, lane, low.second, high.second);
      }
    }
  }

 private:
  static constexpr Tag<float> d = {};
  static constexpr index kN = kLanes<float>;

  struct Row {
    Vector<float> lse, low, delta;
  };
  using Weight = WeightAndGradient<float>;
  // The ds of two queries.
  struct TwoRows {
    Vector<float> first, second;
  };

  HWY_INLINE Row RowOf(index i, const RowLse<float>& lse) const {
    return {hn::Set(d, lse.value), hn::Set(d, lse.low * kLog2E<float>), hn::Set(d, tile_.delta[i])};
  }

  HWY_INLINE Weight Weigh(index i, const Row& row, index lane) const {
    const auto by = hn::Set(d, kLog2E<float>);
    const auto x = hn::Load(d, tile_.s + i * tile_.stride + lane);
    const auto p = Exp2FromBelow(hn::MulSub(hn::Sub(x, row.lse), by, row.low));
    const auto gradient_of = [&](auto weight, auto dp) __attribute__((always_inline)) {
      const auto ds = hn::Mul(weight, hn::Sub(dp, row.delta));
      if constexpr (!kDropout) return ds;
      const auto is_whole = hn::Eq(weight, hn::Set(d, 1.0f));
      return hn::IfThenElse(is_whole, hn::Mul(ds, hn::Set(d, of_whole_)), ds);
    };
    return UseWeight<kMasked, kDropout>(tile_, i, lane, x, p, gradient_of);
  }

  HWY_INLINE TwoRows WeighTwo(index i, const Row& first, const Row& second, bool both,
                              index lane) const {
    const Weight a = Weigh(i, first, lane);
    const Weight b = both ? Weigh(i + 1, second, lane) : Weight{hn::Zero(d), hn::Zero(d)};
    const index at = i / 2 * tile_.stride + lane;
    hn::Store(RoundToPairs(a.used, b.used), PairTag(), to_.p_down + at);
    hn::Store(RoundToPairs(a.ds, b.ds), PairTag(), to_.ds_down + at);
    return {a.ds, b.ds};
  }

  // `high` is written only if the row has it.
  HWY_INLINE void StoreAlong(index i, index lane, Vector<float> low, Vector<float> high) const {
    BFloat16Pair* const row = to_.ds_along + (i * tile_.stride + lane) / 2;
    const auto pairs = RoundInOrder(low, high);
    if (lane + kN < tile_.stride) {
      hn::StoreU(pairs, PairTag(), row);
    } else {
      const hn::Half<PairTag> half;
      hn::StoreU(hn::LowerHalf(half, pairs), half, row);
    }
  }

  const WeightTile<float>& tile_;
  const WeightPairs& to_;
  float of_whole_;
};

/// `masked`: some scores may be -infinity because they are masked.
template <class LseOf>
void SoftmaxBackwardToPairs(const WeightTile<float>& tile, bool masked, LseOf&& lse_of,
                            float of_whole, const WeightPairs& to) {
  if (tile.kept != nullptr) return SoftmaxToPairs<true, true>(tile, of_whole, to).Run(lse_of);
  if (masked) return SoftmaxToPairs<true, false>(tile, of_whole, to).Run(lse_of);
  SoftmaxToPairs<false, false>(tile, of_whole, to).Run(lse_of);
}

#endif  // FOVEA_PAIRS

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_SOFTMAX_BACKWARD_INL_H_
