// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bias/scaling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/bias/scaling.cc"
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

namespace fovea::bias {

template <class T>
LogNScale<T>::LogNScale(double reference_length, Mask mask)
    : reference_length_(reference_length), mask_(std::move(mask)) {
  if (reference_length > 1 && std::isfinite(reference_length)) return;
  fail(ErrorCode::kOptionValue,
       "log_n_scale: the reference length must be above 1 and finite; it is {}", reference_length);
}

// A query that keeps no key has no score; its factor must be finite.
template <class T>
T LogNScale<T>::factor(const Sequence& sequence, index head, index i) const {
  const index n = std::max<index>(mask_.kept_keys(sequence, head, i), 1);
  return static_cast<T>(std::log(static_cast<double>(n)) / std::log(reference_length_));
}

template <class T>
T LogNScale<T>::value(const ScoreSite& site, T score) const {
  return score * factor(site.sequence, site.head, site.i);
}

template <class T>
T LogNScale<T>::derivative(const ScoreSite& site, T) const {
  return factor(site.sequence, site.head, site.i);
}

template <class T>
void LogNScale<T>::apply(const TileSite& site, const TileRows<T>&, const ScoreTile<T>& tile) const {
  scale(site, tile);
}

template <class T>
void LogNScale<T>::pull(const TileSite& site, const TileRows<T>&, const ScoreTile<T>&,
                        const ScoreTile<T>& dscores, const TileGradients<T>&) const {
  scale(site, dscores);
}

template <class T>
void LogNScale<T>::scale(const TileSite& site, const ScoreTile<T>& tile) const {
  Scratch scratch;
  T* const factors = scratch.allocate<T>(site.queries);
  for (index r = 0; r < site.queries; ++r) {
    factors[r] = factor(site.sequence, site.head, site.query + r);
  }
  const Rows<T> rows = tile.rows(site);
  for (index r = 0; r < rows.rows; ++r) {
    T* const row = rows[r];
    if (tile.lanes == TileLanes::kQueries) {
      for (index c = 0; c < rows.columns; ++c) row[c] *= factors[c];
    } else {
      const T of_row = factors[r];
      for (index c = 0; c < rows.columns; ++c) row[c] *= of_row;
    }
  }
}

template <class T>
bool LogNScale<T>::takes_packed() const {
  const auto& parts = mask_.parts();
  return std::all_of(parts.begin(), parts.end(),
                     [](const auto& part) { return part->takes_packed(); });
}

template <class T>
void LogNScale<T>::name_parameters(OverlapCheck& memory) const {
  for (const auto& part : mask_.parts()) part->name_memory(memory);
}

template <class T>
void LogNScale<T>::check_shape(const AttentionSizes& sizes) const {
  for (const auto& part : mask_.parts()) part->check_shape(sizes);
}

template <class T>
void LogNScale<T>::start_call() const {
  for (const auto& part : mask_.parts()) part->start_call();
}

template <class T>
std::string LogNScale<T>::name() const {
  return fmt::format("log_n_scale({})", reference_length_);
}

template class LogNScale<float>;
template class LogNScale<double>;

}  // namespace fovea::bias
#endif  // HWY_ONCE
