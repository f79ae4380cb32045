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

/// v, which the compiler then keeps in a register: it no longer knows that it came from memory.
/// With SSE and AVX2, whose registers are 16, GCC 12 would read a vector of the right operand again
/// for every row of the left one where steps are unrolled: on Zen 3 a product had .75 of the FMA
/// peak that way.
template <class V>
HWY_INLINE V InRegister(V v) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  if constexpr (!kManyRegisters) {
    auto raw = v.raw;
    asm("" : "+x"(raw));
    return V{raw};
  }
#endif
  return v;
}

/// Calls step(k) for k = 0 .. steps - 1. now_and_then() comes with 32 registers before every four
/// steps, with 16 before every kEvery (not before a shorter rest; 0: never). With 32 registers four
/// steps are unrolled, with 16 two: four would need more registers for addresses. Alone on a core
/// of Zen 3, a product is as fast with two steps as with one; where another program uses the core's
/// second thread, it is 1.07 to 1.14 times as fast, for both take turns in issuing instructions. So
/// no step tests whether it is time for now_and_then(): kEvery steps are a loop of their own.
template <index kEvery = 4, class NowAndThen, class Step>
HWY_INLINE void ForEachStep(index steps, NowAndThen&& now_and_then, Step&& step) {
  static_assert(kManyRegisters ? kEvery == 4 : kEvery % 4 == 0);
  index k = 0;
  if constexpr (kManyRegisters) {
    for (; k + 4 <= steps; k += 4) {
      now_and_then();
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) step(k + i);
    }
  } else {
    // Inlined, as what is given to it must be: else sums go to memory (docs/experiments.md).
    const auto pairs_up_to = [&](index end) __attribute__((always_inline)) {
#pragma GCC unroll 1
      for (; k < end; k += 2) {
        step(k);
        step(k + 1);
      }
    };
    while (kEvery > 0 && k + kEvery <= steps) {
      now_and_then();
      pairs_up_to(k + kEvery);
    }
    pairs_up_to(steps - steps % 2);
  }
#pragma GCC unroll 1
  for (; k < steps; ++k) step(k);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_STEPS_INL_H_
