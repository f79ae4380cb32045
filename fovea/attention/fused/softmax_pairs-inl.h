// SPDX-License-Identifier: Apache-2.0
// The softmax of softmax_backward-inl.h in one pass, with results rounded to the pairs of bfloat16
// that products read.
#include "fovea/attention/fused/kernel_call.h"

#if defined(FOVEA_ATTENTION_FUSED_SOFTMAX_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_SOFTMAX_PAIRS_INL_H_
#undef FOVEA_ATTENTION_FUSED_SOFTMAX_PAIRS_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_SOFTMAX_PAIRS_INL_H_
#endif

#include "fovea/attention/fused/softmax_backward-inl.h"
#include "fovea/simd/bits-inl.h"
#include "fovea/simd/math-inl.h"
#include "fovea/simd/pairs-inl.h"

#if FOVEA_PAIRS
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

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

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();
#endif  // FOVEA_PAIRS

#endif  // FOVEA_ATTENTION_FUSED_SOFTMAX_PAIRS_INL_H_
