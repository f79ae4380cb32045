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

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void Philox64(std::uint32_t first, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3,
                         PhiloxKey key, std::uint32_t* words) {
  for (std::uint32_t l = 0; l < 16; ++l) {
    const PhiloxCounter w = philox4x32({first + l, c1, c2, c3}, key);
    for (std::uint32_t k = 0; k < 4; ++k) words[16 * k + l] = w[k];
  }
}
#else

/// The state of the rounds: a word is the low half of a 64-bit lane, which the widening
/// multiplication reads. The high half has no meaning and is never cleared.
template <class D64>
struct PhiloxState {
  hn::Vec<D64> word0, word1, word2, word3;

  HWY_INLINE void Round(hn::Vec<D64> key0, hn::Vec<D64> key1) {
    const hn::Repartition<std::uint32_t, D64> d32;
    const auto a = hn::MulEven(hn::BitCast(d32, word0), hn::Set(d32, 0xD2511F53u));
    const auto b = hn::MulEven(hn::BitCast(d32, word2), hn::Set(d32, 0xCD9E8D57u));
    word0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), word1), key0);
    word2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), word3), key1);
    word1 = b;
    word3 = a;
  }
};

/// 64 words in a fixed order that needs no shuffle whatever the number of lanes:
/// words[16 k + l] = word k of the counter {first + l, c1, c2, c3}, l = 0..15. `words` is aligned.
/// Even and odd counters are computed side by side and interleaved in the lanes of the result.
HWY_INLINE void Philox64(std::uint32_t first, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3,
                         PhiloxKey key, std::uint32_t* words) {
  const hn::CappedTag<std::uint32_t, 16> d;
  using D64 = hn::Repartition<std::uint64_t, decltype(d)>;
  const D64 d64;
  const auto wide = [&](std::uint32_t word) { return hn::Set(d64, std::uint64_t{word}); };
  for (std::size_t l = 0; l < 16; l += hn::Lanes(d)) {
    const auto counters = hn::BitCast(d64, hn::Iota(d, first + static_cast<std::uint32_t>(l)));
    PhiloxState<D64> even{counters, wide(c1), wide(c2), wide(c3)};
    PhiloxState<D64> odd{hn::ShiftRight<32>(counters), wide(c1), wide(c2), wide(c3)};
    auto key0 = wide(key[0]), key1 = wide(key[1]);
    for (int round = 0; round < 10; ++round) {
      even.Round(key0, key1);
      odd.Round(key0, key1);
      key0 = hn::Add(key0, wide(0x9E3779B9u));
      key1 = hn::Add(key1, wide(0xBB67AE85u));
    }
    const auto store = [&](hn::Vec<D64> e, hn::Vec<D64> o, std::uint32_t* to) {
      hn::Store(hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(o)), hn::BitCast(d, e)), d, to);
    };
    store(even.word0, odd.word0, words + l);
    store(even.word1, odd.word1, words + 16 + l);
    store(even.word2, odd.word2, words + 32 + l);
    store(even.word3, odd.word3, words + 48 + l);
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif
