// SPDX-License-Identifier: Apache-2.0
// The loop over the steps of a product whose sums stay in registers. Its functions are in
// fovea::HWY_NAMESPACE.
#include "fovea/base/types.h"

#if defined(FOVEA_SIMD_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_STEPS_INL_H_
#undef FOVEA_SIMD_STEPS_INL_H_
#else
#define FOVEA_SIMD_STEPS_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// Whether the sums of a product have 32 registers.
inline constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;

/// Calls step(k) for k = 0 .. steps - 1, and before_four() about once every four steps. With 32
/// registers four steps are unrolled. With 16, GCC 12 would then read each vector of the right
/// operand from memory again for every row of the left one: on Zen 3 a product had .75 of the FMA
/// peak that way, and has .95 by single steps.
template <class BeforeFour, class Step>
HWY_INLINE void ForEachStep(index steps, BeforeFour&& before_four, Step&& step) {
  index k = 0;
  if constexpr (kManyRegisters) {
    for (; k + 4 <= steps; k += 4) {
      before_four();
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) step(k + i);
    }
  }
#pragma GCC unroll 1
  for (; k < steps; ++k) {
    if (!kManyRegisters && k % 4 == 0) before_four();
    step(k);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_STEPS_INL_H_
