// SPDX-License-Identifier: Apache-2.0
// The logarithm of vectors of doubles. Apart from math-inl.h, for it is Highway's own, whose header
// is long.
#if defined(FOVEA_SIMD_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_LOG_INL_H_
#undef FOVEA_SIMD_LOG_INL_H_
#else
#define FOVEA_SIMD_LOG_INL_H_
#endif

#include "fovea/simd/simd-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// log(x) of positive finite numbers, within 4 ulp; exactly 0 for 1. Other numbers give anything.
HWY_INLINE Vector<double> LogOfPositive(Vector<double> x) { return hn::Log(Tag<double>(), x); }

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_LOG_INL_H_
