// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/softcap.h"

#include <cmath>

#include "fovea/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/bias/softcap.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void CapRows(Rows<T> scores, T cap) {
  for (index r = 0; r < scores.rows; ++r) {
    T* const row = scores[r];
    ForEachLane<T>(scores.columns, [&](auto lanes, index c) {
      const auto x = hn::Mul(lanes.Load(row + c), lanes.Set(1 / cap));
      lanes.Store(hn::Mul(lanes.Set(cap), Tanh(lanes.d, x)), row + c);
    });
  }
}

// d / ds of cap tanh(s / cap) is 1 - tanh^2, and that is 4 u / (1 + u)^2 with u = exp(-2 |s| /
// cap): no difference of two numbers that are nearly 1. Where the gradient is 0, the score may be
// masked, and then it may be NaN or infinite.
template <class T>
void PullRows(Rows<const T> scores, T cap, Rows<T> gradients) {
  for (index r = 0; r < scores.rows; ++r) {
    const T* const row = scores[r];
    T* const gradient = gradients[r];
    ForEachLane<T>(scores.columns, [&](auto lanes, index c) {
      const auto one = lanes.Set(1), now = lanes.Load(gradient + c);
      const auto x = hn::Mul(hn::Abs(lanes.Load(row + c)), lanes.Set(-2 / cap));
      const auto u = Exp(lanes.d, x), sum = hn::Add(u, one);
      const auto slope = hn::Div(hn::Mul(u, lanes.Set(4)), hn::Mul(sum, sum));
      const auto dropped = hn::Eq(now, hn::Zero(lanes.d));
      lanes.Store(hn::IfThenElse(dropped, now, hn::Mul(now, slope)), gradient + c);
    });
  }
}

auto CapRowsKernel() { return PerPrecision{CapRows<float>, CapRows<double>}; }
auto PullRowsKernel() { return PerPrecision{PullRows<float>, PullRows<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(CapRowsKernel);
HWY_EXPORT(PullRowsKernel);

namespace bias {

template <class T>
Softcap<T>::Softcap(double cap) : cap_(static_cast<T>(cap)) {
  if (cap_ > 0 && std::isfinite(cap_)) return;
  fail(ErrorCode::kOptionValue, "softcap: the cap must be above 0 and finite; it is {}", cap);
}

template <class T>
T Softcap<T>::value(const ScoreSite&, T score) const {
  return cap_ * std::tanh(score / cap_);
}

template <class T>
T Softcap<T>::derivative(const ScoreSite&, T score) const {
  // 1 - tanh^2, without a difference of two numbers that are nearly 1.
  const T u = std::exp(-2 * std::abs(score / cap_));
  return 4 * u / ((1 + u) * (1 + u));
}

template <class T>
void Softcap<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  FOVEA_DISPATCH(CapRowsKernel)().of<T>()(tile.rows(site), cap_);
}

template <class T>
void Softcap<T>::pull(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& scores,
                      const ScoreTile<T>& dscores, const TileGradients<T>&) const {
  FOVEA_DISPATCH(PullRowsKernel)().of<T>()(scores.rows(site), cap_, dscores.rows(site));
}

template <class T>
std::string Softcap<T>::name() const {
  return fmt::format("softcap({})", cap_);
}

template class Softcap<float>;
template class Softcap<double>;

}  // namespace bias
}  // namespace fovea
#endif  // HWY_ONCE
