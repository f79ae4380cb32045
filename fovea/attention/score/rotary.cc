// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/rotary.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/score/rotary.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

// (x, y), turned by an angle. Not in plain C++: of x c - y s and x s + y c side by side, g++ 12
// makes fused multiply-adds, whatever -ffp-contract says, and other bits.
template <class V>
HWY_INLINE void Turn(V& x, V& y, V cosine, V sine) {
  const V turned = hn::Sub(hn::Mul(x, cosine), hn::Mul(y, sine));
  y = hn::Add(hn::Mul(x, sine), hn::Mul(y, cosine));
  x = turned;
}

// Pairs (c, c + half).
template <class T>
void TurnHalves(const T* row, const T* cosines, const T* sines, T sign, index half, T* to) {
  ForEachLane<T>(half, [=](auto lanes, index c) {
    auto x = lanes.Load(row + c), y = lanes.Load(row + half + c);
    Turn(x, y, lanes.Load(cosines + c), hn::Mul(lanes.Set(sign), lanes.Load(sines + c)));
    lanes.Store(x, to + c);
    lanes.Store(y, to + half + c);
  });
}

// Pairs (2 c, 2 c + 1).
template <class T>
void TurnInterleaved(const T* row, const T* cosines, const T* sines, T sign, index half, T* to) {
  const auto turn = [=](auto d, index c) {
    hn::Vec<decltype(d)> x, y;
    hn::LoadInterleaved2(d, row + 2 * c, x, y);
    Turn(x, y, hn::LoadU(d, cosines + c), hn::Mul(hn::Set(d, sign), hn::LoadU(d, sines + c)));
    hn::StoreInterleaved2(x, y, d, to + 2 * c);
  };
  index c = 0;
  for (; c + kLanes<T> <= half; c += kLanes<T>) turn(Tag<T>(), c);
  for (; c < half; ++c) turn(hn::CappedTag<T, 1>(), c);
}

auto TurnHalvesKernel() { return PerPrecision{TurnHalves<float>, TurnHalves<double>}; }
auto TurnInterleavedKernel() {
  return PerPrecision{TurnInterleaved<float>, TurnInterleaved<double>};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(TurnHalvesKernel);
HWY_EXPORT(TurnInterleavedKernel);

template <class T>
RotaryTable<T>::RotaryTable(const Context& ctx, const Rotary& rotary, index D, index first,
                            index last)
    : half_(D / 2), first_(first) {
  turn_row_ = rotary.pairs == RotaryPairs::kHalves
                  ? FOVEA_DISPATCH(TurnHalvesKernel)().template of<T>()
                  : FOVEA_DISPATCH(TurnInterleavedKernel)().template of<T>();
  const std::vector<double> angles = rotary_angles(rotary, D);
  cosines_.resize(static_cast<std::size_t>((last - first + 1) * half_));
  sines_.resize(cosines_.size());
  constexpr double kTurnFlops = 100;  // a sine and a cosine
  const double cost = kTurnFlops * static_cast<double>(half_);
  ctx.for_ranges(last - first + 1, cost, [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      T *cosine = cosines_.data() + n * half_, *sine = sines_.data() + n * half_;
      for (const double one : angles) {
        const double angle = static_cast<double>(rotary.first + first + n) * one;
        *cosine++ = static_cast<T>(rotary.amplitude * std::cos(angle));
        *sine++ = static_cast<T>(rotary.amplitude * std::sin(angle));
      }
    }
  });
}

template <class T>
void RotaryTable<T>::turn_by(const T* row, index position, T sign, T* to) const {
  const T* const cosines = cosines_.data() + (position - first_) * half_;
  const T* const sines = sines_.data() + (position - first_) * half_;
  turn_row_(row, cosines, sines, sign, half_, to);
}

template class RotaryTable<float>;
template class RotaryTable<double>;

}  // namespace fovea::detail
#endif  // HWY_ONCE
