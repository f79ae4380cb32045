// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011), one counter a lane: the words of
// base/random.h's philox4x32, bit for bit, on every instruction set. Include it from a kernel,
// below simd-inl.h.
#include "fovea/base/random.h"

#if defined(FOVEA_SIMD_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_PHILOX_INL_H_
#undef FOVEA_SIMD_PHILOX_INL_H_
#else
#define FOVEA_SIMD_PHILOX_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// The four words of the counters of as many lanes as D has.
template <class D>
struct PhiloxVectors {
  hn::Vec<D> word0, word1, word2, word3;
};

/// high:low = a * b, lane by lane.
template <class D>
HWY_INLINE void PhiloxMultiply(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D>& high, hn::Vec<D>& low) {
#if HWY_TARGET == HWY_SCALAR
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * hn::GetLane(b);
  high = hn::Set(d, static_cast<std::uint32_t>(product >> 32));
  low = hn::Set(d, static_cast<std::uint32_t>(product));
#else
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(
      hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(hn::Repartition<std::uint64_t, D>(), a))), b);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
#endif
}

/// philox4x32 of each lane's counter. D is a tag of std::uint32_t.
template <class D>
HWY_INLINE PhiloxVectors<D> Philox4x32(D d, PhiloxVectors<D> c, PhiloxKey key) {
  const auto multiplier0 = hn::Set(d, 0xD2511F53u), multiplier1 = hn::Set(d, 0xCD9E8D57u);
  for (int round = 0; round < 10; ++round) {
    hn::Vec<D> high0, low0, high1, low1;
    PhiloxMultiply(d, c.word0, multiplier0, high0, low0);
    PhiloxMultiply(d, c.word2, multiplier1, high1, low1);
    c.word0 = hn::Xor(hn::Xor(high1, c.word1), hn::Set(d, key[0]));
    c.word2 = hn::Xor(hn::Xor(high0, c.word3), hn::Set(d, key[1]));
    c.word1 = low1;
    c.word3 = low0;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

/// 64 words in a fixed order that needs no shuffle whatever the number of lanes:
/// words[16 k + l] = word k of the counter {first + l, c1, c2, c3}, l = 0..15. `words` is aligned.
HWY_INLINE void Philox64(std::uint32_t first, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3,
                         PhiloxKey key, std::uint32_t* words) {
  const hn::CappedTag<std::uint32_t, 16> d;
  for (std::size_t l = 0; l < 16; l += hn::Lanes(d)) {
    const auto counter = hn::Iota(d, first + static_cast<std::uint32_t>(l));
    const auto w = Philox4x32(d, {counter, hn::Set(d, c1), hn::Set(d, c2), hn::Set(d, c3)}, key);
    hn::Store(w.word0, d, words + l);
    hn::Store(w.word1, d, words + 16 + l);
    hn::Store(w.word2, d, words + 32 + l);
    hn::Store(w.word3, d, words + 48 + l);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif
