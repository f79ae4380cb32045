// SPDX-License-Identifier: Apache-2.0
// Words of bits: transposed, and as masks of lanes, for one instruction set.
#include <cstdint>
#include <cstring>

#if defined(FOVEA_SIMD_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_BITS_INL_H_
#undef FOVEA_SIMD_BITS_INL_H_
#else
#define FOVEA_SIMD_BITS_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// Transposes 64 x 64 bits: bit c of word r changes places with bit r of word c (Hacker's Delight
/// 7-3).
inline void TransposeBits(std::uint64_t* words) {
  std::uint64_t mask = 0x00000000FFFFFFFFu;
  for (unsigned width = 32; width != 0; width >>= 1, mask ^= mask << width) {
    for (unsigned r = 0; r < 64; r = ((r | width) + 1) & ~width) {
      const std::uint64_t change = (words[r] >> width ^ words[r | width]) & mask;
      words[r] ^= change << width;
      words[r | width] ^= change;
    }
  }
}

/// Lanes whose bit is set, from bit 0 on.
template <class T>
HWY_INLINE hn::Mask<Tag<T>> LaneMask(std::uint64_t bits) {
  HWY_ALIGN std::uint8_t bytes[8];
  std::memcpy(bytes, &bits, sizeof bits);
  return hn::LoadMaskBits(Tag<T>(), bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_BITS_INL_H_
