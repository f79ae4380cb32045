// SPDX-License-Identifier: Apache-2.0
// Turns the scores of a backward tile into weights, and the gradients of weights into those of
// scores.
#include <utility>

#include "fovea/attention/fused/kernel_call.h"

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

/// p = exp2((s - lse) log2 e), ds = p (dp - delta), in place, for softmax; lse_of(i) is the lse of
/// the i-th query. Sigmoid: ds = p (1 - p) dp; none: p = s, ds = dp. kMasked: some scores may be
/// -infinity because they are masked. A masked score gets weight 0 and gradient 0 by selection, so
/// its value and its row may be NaN.
template <class Norm, bool kMasked, bool kDropout, class T, class LseOf>
HWY_INLINE void NormBackwardRows(Norm norm, const WeightTile<T>& tile, LseOf&& lse_of) {
  constexpr Tag<T> d;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const auto by = hn::Set(d, kLog2E<T>);
  [[maybe_unused]] const auto masked = hn::Set(d, -kInfinity);
  [[maybe_unused]] const auto kept_scale = hn::Set(d, tile.keep_scale);
  for (index i = 0; i < tile.queries; ++i) {
    const RowLse<T> row = lse_of(i);
    const auto lse = hn::Set(d, row.value), low = hn::Set(d, row.low * kLog2E<T>);
    const auto delta = hn::Set(d, tile.delta[i]);
    for (index lane = 0; lane < tile.stride; lane += kLanes<T>) {
      T* const score = tile.s + i * tile.stride + lane;
      T* const dweight = tile.dp + i * tile.stride + lane;
      const auto x = hn::Load(d, score);
      auto p = x, slope = x;  // d weight / d score; not used for softmax
      if constexpr (Norm::kNeedsLse) {
        p = Exp2OfWeight(d, hn::MulSub(hn::Sub(x, lse), by, low));
      } else {
        const auto weight = WeightOf<T>(norm, x);
        p = weight.weight;
        slope = weight.slope;
      }
      // Eq, not Ne, which is false for NaN on some instruction sets: a NaN must be passed on.
      [[maybe_unused]] const auto refused = hn::Eq(x, masked);
      if constexpr (kMasked) p = hn::IfThenZeroElse(refused, p);
      auto dweight_now = hn::Load(d, dweight);
      auto used = p;
      if constexpr (kDropout) {
        const auto keeps = LaneMask<T>(tile.kept[i] >> lane);
        dweight_now = hn::IfThenElseZero(keeps, dweight_now);
        used = hn::IfThenElseZero(keeps, hn::Mul(p, kept_scale));
      }
      auto ds =
          Norm::kNeedsLse ? hn::Mul(p, hn::Sub(dweight_now, delta)) : hn::Mul(slope, dweight_now);
      if constexpr (kMasked) ds = hn::IfThenZeroElse(refused, ds);
      hn::Store(used, d, score);
      hn::Store(ds, d, dweight);
    }
  }
}

#if FOVEA_PAIRS
/// Where SoftmaxBackwardToPairs puts p (after dropout) and ds: as pairs along the queries
/// [queries / 2][stride], and along the keys [queries][stride / 2].
struct WeightPairs {
  BFloat16Pair *p_down, *ds_down, *ds_along;
};

/// What NormBackwardRows computes for softmax, rounded to pairs; s and dp of the tile stay.
/// kDropout: the gradient of a score with weight 1 is multiplied by `of_whole`.
template <bool kMasked, bool kDropout, class LseOf>
void SoftmaxBackwardToPairs(const WeightTile<float>& tile, LseOf&& lse_of, float of_whole,
                            const WeightPairs& to) {
  constexpr Tag<float> d;
  constexpr index kN = kLanes<float>;
  const auto by = hn::Set(d, kLog2E<float>), one = hn::Set(d, 1.0f);
  [[maybe_unused]] const auto masked = hn::Set(d, -std::numeric_limits<float>::infinity());
  [[maybe_unused]] const auto kept_scale = hn::Set(d, tile.keep_scale);
  [[maybe_unused]] const auto factor_of_whole = hn::Set(d, of_whole);
  struct Row {
    Vector<float> lse, low, delta;
  };
  struct Weight {
    Vector<float> p, ds;
  };
  const auto weigh = [&](index i, const Row& row, index lane) HWY_ATTR -> Weight {
    const auto x = hn::Load(d, tile.s + i * tile.stride + lane);
    auto p = Exp2OfRoundedWeight(hn::MulSub(hn::Sub(x, row.lse), by, row.low));
    [[maybe_unused]] const auto refused = hn::Eq(x, masked);
    if constexpr (kMasked) p = hn::IfThenZeroElse(refused, p);
    auto dweight = hn::Load(d, tile.dp + i * tile.stride + lane);
    auto used = p;
    if constexpr (kDropout) {
      const auto keeps = LaneMask<float>(tile.kept[i] >> lane);
      dweight = hn::IfThenElseZero(keeps, dweight);
      used = hn::IfThenElseZero(keeps, hn::Mul(p, kept_scale));
    }
    auto ds = hn::Mul(p, hn::Sub(dweight, row.delta));
    if constexpr (kDropout) {
      ds = hn::IfThenElse(hn::Eq(p, one), hn::Mul(ds, factor_of_whole), ds);
    }
    if constexpr (kMasked) ds = hn::IfThenZeroElse(refused, ds);
    return {used, ds};
  };
  const auto row_of = [&](index i) HWY_ATTR -> Row {
    const RowLse<float> lse = lse_of(i);
    return {hn::Set(d, lse.value), hn::Set(d, lse.low * kLog2E<float>), hn::Set(d, tile.delta[i])};
  };
  const auto weigh_two = [&](index i, const Row& first, const Row& second, bool both,
                             index lane) HWY_ATTR {
    const Weight a = weigh(i, first, lane);
    const Weight b = both ? weigh(i + 1, second, lane) : Weight{hn::Zero(d), hn::Zero(d)};
    const index at = i / 2 * tile.stride + lane;
    hn::Store(RoundToPairs(a.p, b.p), PairTag(), to.p_down + at);
    hn::Store(RoundToPairs(a.ds, b.ds), PairTag(), to.ds_down + at);
    return std::pair{a.ds, b.ds};
  };
  const auto store_along = [&](index i, index lane, Vector<float> low, Vector<float> high)
                               HWY_ATTR {
    const hn::Half<PairTag> half;
    BFloat16Pair* const row = to.ds_along + (i * tile.stride + lane) / 2;
    const auto pairs = RoundInOrder(low, high);
    if (lane + kN < tile.stride) {
      hn::StoreU(pairs, PairTag(), row);
    } else {
      hn::StoreU(hn::LowerHalf(half, pairs), half, row);
    }
  };
  for (index i = 0; i < tile.queries; i += 2) {
    const bool both = i + 1 < tile.queries;
    const Row first = row_of(i), second = both ? row_of(i + 1) : first;
    for (index lane = 0; lane < tile.stride; lane += 2 * kN) {
      const bool wide = lane + kN < tile.stride;
      const auto low = weigh_two(i, first, second, both, lane);
      const auto high = wide ? weigh_two(i, first, second, both, lane + kN) : low;
      store_along(i, lane, low.first, high.first);
      if (both) store_along(i + 1, lane, low.second, high.second);
    }
  }
}
#endif

/// After NormBackwardRows, for softmax: sets the gradient of a score with weight 1 to 0, as it is
/// if all other weights of the row are 0. With value parts, o and dp are rounded differently, so
/// that dp - delta is not exactly 0. NaN and infinity become NaN.
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
void NormBackwardAs(Norm norm, const WeightTile<T>& tile, bool masked, LseOf&& lse_of) {
  if (tile.kept != nullptr) return NormBackwardRows<Norm, true, true>(norm, tile, lse_of);
  if (masked) return NormBackwardRows<Norm, true, false>(norm, tile, lse_of);
  NormBackwardRows<Norm, false, false>(norm, tile, lse_of);
}

template <class T, class LseOf>
void NormBackward(const Norm& norm, const WeightTile<T>& tile, bool masked, LseOf&& lse_of) {
  std::visit([&](auto one) { NormBackwardAs(one, tile, masked, lse_of); }, norm);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_SOFTMAX_BACKWARD_INL_H_
