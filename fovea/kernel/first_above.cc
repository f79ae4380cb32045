// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/first_above.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/first_above.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
index FirstAbove(const T* x, index begin, index end, T least) {
  constexpr index kN = kLanes<T>, kTogether = 4;
  const Tag<T> d;
  const auto bound = hn::Set(d, least);
  const auto above = [&](index i) { return hn::Gt(hn::LoadU(d, x + i), bound); };
  index i = begin;
  for (; i + kTogether * kN <= end; i += kTogether * kN) {
    const auto any =
        hn::Or(hn::Or(above(i), above(i + kN)), hn::Or(above(i + 2 * kN), above(i + 3 * kN)));
    if (!hn::AllFalse(d, any)) break;
  }
  for (; i + kN <= end; i += kN) {
    const auto found = hn::FindFirstTrue(d, above(i));
    if (found >= 0) return i + static_cast<index>(found);
  }
  while (i < end && !(x[i] > least)) ++i;
  return i;
}

auto FirstAboveKernel() { return PerPrecision{FirstAbove<float>, FirstAbove<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(FirstAboveKernel);

template <class T>
index first_above(Vec<const T> x, index begin, T least) {
  return FOVEA_DISPATCH(FirstAboveKernel)().of<T>()(x.data, begin, x.size, least);
}

template index first_above(Vec<const float>, index, float);
template index first_above(Vec<const double>, index, double);

}  // namespace fovea
#endif  // HWY_ONCE
