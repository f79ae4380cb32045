// SPDX-License-Identifier: Apache-2.0
// Turns the scores of a forward tile into weights, one block of keys after another. Queries are in
// the lanes, so that maxima and sums are vertical: no step goes across a vector.
#include <type_traits>

#include "fovea/attention/fused/kernel_call.h"

#if defined(FOVEA_ATTENTION_FUSED_ONLINE_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_FUSED_ONLINE_SOFTMAX_INL_H_
#undef FOVEA_ATTENTION_FUSED_ONLINE_SOFTMAX_INL_H_
#else
#define FOVEA_ATTENTION_FUSED_ONLINE_SOFTMAX_INL_H_
#endif

#include "fovea/attention/fused/norm-inl.h"
#include "fovea/simd/log-inl.h"
#include "fovea/simd/math-inl.h"
#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

/// The state of the rows of a tile (Milakov and Gimelshein 2018), a lane for each query. A block of
/// scores is [keys][stride].
template <class T>
struct RowState {
  index stride = 0;
  T* largest = nullptr;  ///< largest score of the block
  T* m = nullptr;        ///< running maximum
  T* l = nullptr;        ///< running sum of exp(score - m); without softmax 1, or NaN where a
                         ///< score is not finite
  T* alpha = nullptr;    ///< rescale factor exp(old m - new m); without softmax 1

  void Start(const Norm& norm);
  void TakeBlockMax(const T* s, Span lanes, Span keys);
  void UpdateMax(const Norm& norm);
  /// s becomes p; for softmax exp(s - m), and its sum joins l. `lanes` are whole vectors.
  void ExpAndSum(const Norm& norm, T* s, Span lanes, Span keys);
#if FOVEA_PAIRS
  /// ExpAndSum for softmax, with weights as pairs along the keys; s becomes them only if `keep`.
  void ExpAndSumToPairs(T* s, index keys, BFloat16Pair* p, bool keep);
#endif
  /// The final factor of p: by / (l + the sink's part); 0 for a row that keeps no key.
  Vector<T> FinalRescale(const RowNorm<T>& norm, T by, index lane) const;
  /// The log-sum-exp of all rows: norm.lse(m, l).
  void Lse(const RowNorm<T>& norm, T* value, T* low) const;

 private:
  template <int kVectors>
  void ExpAndSumPanel(T* s, index lane, Span keys);
#if FOVEA_PAIRS
  template <int kVectors>
  void ExpAndSumPanelToPairs(T* s, index lane, index keys, BFloat16Pair* p, bool keep);
#endif
  template <class F>
  void WeighEachAlone(T* s, Span lanes, Span keys, F&& weight);
};

// The first maximum is the lowest finite number: no score is lower, and the difference of two
// maxima is never NaN.
template <class T>
void RowState<T>::Start(const Norm& norm) {
  std::fill_n(m, stride, std::numeric_limits<T>::lowest());
  std::fill_n(l, stride, needs_lse(norm) ? T{0} : T{1});
  std::fill_n(alpha, stride, T{1});
}

template <class T>
void RowState<T>::TakeBlockMax(const T* s, Span lanes, Span keys) {
  constexpr Tag<T> d;
  for (index lane = lanes.begin; lane < lanes.end; lane += kLanes<T>) {
    auto most = hn::Load(d, largest + lane);
    for (index j = keys.begin; j < keys.end; ++j)
      most = hn::Max(most, hn::Load(d, s + j * stride + lane));
    hn::Store(most, d, largest + lane);
  }
}

// Computes the new row max of each lane, and the factor that rescales earlier sums.
template <class T>
void RowState<T>::UpdateMax(const Norm& norm) {
  constexpr Tag<T> d;
  const auto by = hn::Set(d, kLog2E<T>);
  const bool softmax = needs_lse(norm);
  for (index lane = 0; lane < stride; lane += kLanes<T>) {
    const auto before = hn::Load(d, m + lane);
    const auto now = hn::Max(before, hn::Load(d, largest + lane));
    hn::Store(now, d, m + lane);
    if (!softmax) continue;
    const auto rescale = Exp2OfWeight(d, hn::Mul(hn::Sub(before, now), by));
    hn::Store(rescale, d, alpha + lane);
    hn::Store(hn::Mul(hn::Load(d, l + lane), rescale), d, l + lane);
  }
}

template <class T>
void RowState<T>::ExpAndSum(const Norm& norm, T* s, Span lanes, Span keys) {
  const auto visit = [&]<class One>(One one) {
    if constexpr (One::kNeedsLse) {
      constexpr int kVectors = kManyRegisters ? 4 : 2;
      index lane = lanes.begin;
      for (; lane + kVectors * kLanes<T> <= lanes.end; lane += kVectors * kLanes<T>) {
        ExpAndSumPanel<kVectors>(s, lane, keys);
      }
      for (; lane < lanes.end; lane += kLanes<T>) ExpAndSumPanel<1>(s, lane, keys);
    } else {
      WeighEachAlone(s, lanes, keys, [one](auto x) { return WeightOf<T>(one, x).weight; });
    }
  };
  std::visit(visit, norm);
}

template <class T>
template <int kVectors>
void RowState<T>::ExpAndSumPanel(T* s, index lane, Span keys) {
  constexpr Tag<T> d;
  constexpr index kN = kLanes<T>;
  const auto by = hn::Set(d, kLog2E<T>);
  Vector<T> most[kVectors], sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    most[v] = hn::Load(d, m + lane + v * kN);
    sum[v] = hn::Load(d, l + lane + v * kN);
  }
  for (index j = keys.begin; j < keys.end; ++j) {
    T* const scores = s + j * stride + lane;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto below = hn::Sub(hn::Load(d, scores + v * kN), most[v]);
      const auto p = Exp2OfWeight<5>(d, hn::Mul(below, by));
      hn::Store(p, d, scores + v * kN);
      sum[v] = hn::Add(sum[v], p);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::Store(sum[v], d, l + lane + v * kN);
}

#if FOVEA_PAIRS
template <class T>
void RowState<T>::ExpAndSumToPairs(T* s, index keys, BFloat16Pair* p, bool keep) {
  index lane = 0;
  for (; lane + 2 * kLanes<T> <= stride; lane += 2 * kLanes<T>) {
    ExpAndSumPanelToPairs<2>(s, lane, keys, p, keep);
  }
  for (; lane < stride; lane += kLanes<T>) ExpAndSumPanelToPairs<1>(s, lane, keys, p, keep);
}

template <class T>
template <int kVectors>
void RowState<T>::ExpAndSumPanelToPairs(T* s, index lane, index keys, BFloat16Pair* p, bool keep) {
  constexpr Tag<T> d;
  constexpr index kN = kLanes<T>;
  const auto by = hn::Set(d, kLog2E<T>);
  Vector<T> most[kVectors], sum[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    most[v] = hn::Load(d, m + lane + v * kN);
    sum[v] = hn::Load(d, l + lane + v * kN);
  }
  // The weights of kRows rows, those of a row side by side.
  const auto weigh = [&]<int kRows>(std::integral_constant<int, kRows>, index j, auto& weight) {
    T* const scores = s + j * stride + lane;
#pragma GCC unroll 4
    for (int n = 0; n < kRows * kVectors; ++n) {
      const auto score = hn::Load(d, scores + n / kVectors * stride + n % kVectors * kN);
      weight[n] = hn::Mul(hn::Sub(score, most[n % kVectors]), by);
    }
    Exp2FromBelow(weight);
#pragma GCC unroll 4
    for (int n = 0; n < kRows * kVectors; ++n) {
      if (keep) hn::Store(weight[n], d, scores + n / kVectors * stride + n % kVectors * kN);
      sum[n % kVectors] = hn::Add(sum[n % kVectors], weight[n]);
    }
  };
  index j = 0;
  for (; j + 2 <= keys; j += 2) {
    Vector<T> weight[2 * kVectors];
    weigh(std::integral_constant<int, 2>(), j, weight);
    BFloat16Pair* const pairs = p + j / 2 * stride + lane;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const auto both = RoundToPairs(weight[v], weight[kVectors + v]);
      hn::Store(both, PairTag(), pairs + v * kN);
    }
  }
  if (j < keys) {
    Vector<T> weight[kVectors];
    weigh(std::integral_constant<int, 1>(), j, weight);
    BFloat16Pair* const pairs = p + j / 2 * stride + lane;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(RoundToPairs(weight[v], hn::Zero(d)), PairTag(), pairs + v * kN);
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) hn::Store(sum[v], d, l + lane + v * kN);
}
#endif

// Each weight depends only on its own score; the weight of a masked score is 0. x - x is 0, or NaN
// for a score that is not finite.
template <class T>
template <class F>
void RowState<T>::WeighEachAlone(T* s, Span lanes, Span keys, F&& weight) {
  constexpr Tag<T> d;
  const auto masked = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (index lane = lanes.begin; lane < lanes.end; lane += kLanes<T>) {
    auto sum = hn::Load(d, l + lane);
    for (index j = keys.begin; j < keys.end; ++j) {
      T* const score = s + j * stride + lane;
      const auto x = hn::Load(d, score);
      const auto refused = hn::Eq(x, masked);
      sum = hn::Add(sum, hn::IfThenZeroElse(refused, hn::Sub(x, x)));
      hn::Store(hn::IfThenZeroElse(refused, weight(x)), d, score);
    }
    hn::Store(sum, d, l + lane);
  }
}

template <class T>
Vector<T> RowState<T>::FinalRescale(const RowNorm<T>& norm, T by, index lane) const {
  constexpr Tag<T> d;
  if (!needs_lse(norm.norm)) return hn::Set(d, by);
  const auto of_keys = hn::Load(d, l + lane);
  if (norm.sink == -std::numeric_limits<T>::infinity()) {
    return hn::IfThenZeroElse(hn::Eq(of_keys, hn::Zero(d)), hn::Div(hn::Set(d, by), of_keys));
  }
  const auto above = hn::Sub(hn::Set(d, norm.sink), hn::Load(d, m + lane));
  const auto of_sink = Exp2(d, hn::Mul(above, hn::Set(d, kLog2E<T>)));
  const auto total = hn::Add(of_keys, of_sink);
  return hn::IfThenZeroElse(hn::Eq(total, hn::Zero(d)), hn::Div(hn::Set(d, by), total));
}

// RowNorm::lse by vectors of doubles, for rows of floats without a sink. A row whose sum is not a
// positive number goes to RowNorm::lse itself: LogOfPositive takes nothing else.
template <class T>
void RowState<T>::Lse(const RowNorm<T>& norm, T* value, T* low) const {
  index done = 0;
  const auto each = [&](index r) {
    const RowLse<T> lse = norm.lse(m[r], l[r]);
    value[r] = lse.value;
    low[r] = lse.low;
  };
  if constexpr (std::is_same_v<T, float>) {
    constexpr Tag<double> d;
    constexpr hn::Rebind<float, Tag<double>> of_floats;
    const bool has_sink = norm.sink != -std::numeric_limits<float>::infinity();
    for (; !has_sink && done < stride; done += kLanes<double>) {
      const auto most = hn::PromoteTo(d, hn::Load(of_floats, m + done));
      const auto above = LogOfPositive(hn::PromoteTo(d, hn::Load(of_floats, l + done)));
      const auto nearest = hn::DemoteTo(of_floats, hn::Add(most, above));
      const auto swap = hn::Lt(hn::Abs(most), hn::Abs(above));
      const auto large = hn::IfThenElse(swap, above, most);
      const auto small = hn::IfThenElse(swap, most, above);
      const auto rest = hn::Add(hn::Sub(large, hn::PromoteTo(d, nearest)), small);
      hn::Store(nearest, of_floats, value + done);
      hn::Store(hn::DemoteTo(of_floats, rest), of_floats, low + done);
      for (index r = done; r < done + kLanes<double>; ++r) {
        if (!(l[r] > 0 && l[r] <= std::numeric_limits<float>::max())) each(r);
      }
    }
  }
  for (; done < stride; ++done) each(done);
}

/// Writes the log-sum-exp of these rows of the call, where it is asked for.
template <class T>
void WriteLse(const AttentionOutputs<T>& out, index batch, index head, Span rows,
              const RowNorm<Wide<T>>& norm, const RowState<Wide<T>>& state) {
  if (out.lse.empty() && out.lse_low.empty()) return;
  HWY_ALIGN Wide<T> value[kLaneTile];
  HWY_ALIGN Wide<T> low[kLaneTile];
  state.Lse(norm, value, low);
  for (index r = 0; r < rows.end - rows.begin; ++r) {
    if (!out.lse.empty()) out.lse.at(batch, head, rows.begin + r) = value[r];
    if (!out.lse_low.empty()) out.lse_low.at(batch, head, rows.begin + r) = low[r];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_FUSED_ONLINE_SOFTMAX_INL_H_
