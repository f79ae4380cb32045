// SPDX-License-Identifier: Apache-2.0
// Floats rounded to bfloat16, on every instruction set.
#if defined(FOVEA_SIMD_ROUND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_ROUND_INL_H_
#undef FOVEA_SIMD_ROUND_INL_H_
#else
#define FOVEA_SIMD_ROUND_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// to_float(to_bfloat16(x)) in each lane.
HWY_INLINE Vector<float> RoundToBFloat16(Vector<float> x) {
  constexpr Tag<float> d;
  constexpr hn::RebindToUnsigned<Tag<float>> u;
  const auto bits = hn::BitCast(u, x), upper = hn::Set(u, 0xffff0000u);
  const auto tie_to_even = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1u));
  const auto rounded = hn::Add(bits, hn::Add(hn::Set(u, 0x7fffu), tie_to_even));
  const auto quiet = hn::Or(bits, hn::Set(u, 0x400000u));
  const auto of_number = hn::BitCast(d, hn::And(rounded, upper));
  return hn::IfThenElse(hn::IsNaN(x), hn::BitCast(d, hn::And(quiet, upper)), of_number);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_ROUND_INL_H_
