// SPDX-License-Identifier: Apache-2.0
// Sums that both passes along the sequences of a CRF share. Include it below scaled-inl.h.
#if defined(FOVEA_KERNEL_CRF_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNEL_CRF_SUMS_INL_H_
#undef FOVEA_KERNEL_CRF_SUMS_INL_H_
#else
#define FOVEA_KERNEL_CRF_SUMS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "fovea/kernel/scaled-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

inline constexpr double kLn2 = 0.6931471805599453;

/// A sum of products of joined numbers that is at least this has lost nothing that counts.
template <class T>
inline constexpr T kSafeSum = kIsFloat<T> ? T{0x1p-66} : static_cast<T>(0x1p-800);

template <class T>
HWY_INLINE Scaled<const T> In(Scaled<T> x) {
  return {x.m, x.e};
}

/// log of the sum of a b, both [n].
template <class T>
HWY_INLINE double LogOfDot(Scaled<const T> a, Scaled<const T> b, index n) {
  double most = 2.0 * double{kNoExponent<T>}, sum = 0;
  for (index k = 0; k < n; ++k) {
    if (a.m[k] != 0 && b.m[k] != 0) most = std::max(most, double{a.e[k]} + double{b.e[k]});
  }
  for (index k = 0; k < n; ++k) {
    const double e = std::max(double{a.e[k]} + double{b.e[k]} - most, -2000.0);
    sum += std::ldexp(double{a.m[k]} * double{b.m[k]}, static_cast<int>(std::min(e, 0.0)));
  }
  return most * kLn2 + std::log(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_KERNEL_CRF_SUMS_INL_H_
