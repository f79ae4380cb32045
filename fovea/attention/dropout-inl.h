// SPDX-License-Identifier: Apache-2.0
// The random bits of dropout for a tile of scores, for one instruction set.
#include <cstdint>

#include "fovea/attention/dropout.h"

#if defined(FOVEA_ATTENTION_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_ATTENTION_DROPOUT_INL_H_
#undef FOVEA_ATTENTION_DROPOUT_INL_H_
#else
#define FOVEA_ATTENTION_DROPOUT_INL_H_
#endif

#include "fovea/simd/philox-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {

/// The comparison of 16 random bits of each of 16 scores with the threshold of dropout.
struct SixteenBits {
  std::uint64_t kept;  // bit l: the bits of words[l] from `shift` on are >= the threshold
  bool tie;            // whether any of them equals the threshold
};
HWY_INLINE SixteenBits CompareBits(const std::uint32_t* words, int shift, std::uint32_t threshold) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto limit = hn::Set(di, static_cast<std::int32_t>(threshold));
  SixteenBits result{0, false};
  for (std::size_t l = 0; l < 16; l += hn::Lanes(d)) {
    const auto half = hn::BitCast(
        di, hn::And(hn::ShiftRightSame(hn::Load(d, words + l), shift), hn::Set(d, 0xFFFFu)));
    HWY_ALIGN std::uint8_t mask[8] = {};
    hn::StoreMaskBits(di, hn::Not(hn::Lt(half, limit)), mask);
    result.kept |= (std::uint64_t{mask[0]} | std::uint64_t{mask[1]} << 8) << l;
    result.tie |= !hn::AllFalse(di, hn::Eq(half, limit));
  }
  return result;
}

/// Which scores of a rectangle dropout keeps: bit r of word c is query query + r, key key + c, for
/// r < 64 and c < keys.
inline void DropoutBits(const DropoutStream& stream, const DropoutRule& rule, index query,
                        index key, index keys, std::uint64_t* bits) {
  HWY_ALIGN std::uint32_t words[64];
  for (index block = key / 8; block * 8 < key + keys; ++block) {
    const index first = block * 8 - key;
    for (index c = 0; c < 8; ++c) {
      if (first + c >= 0 && first + c < keys) bits[first + c] = 0;
    }
    for (index r0 = 0; r0 < 64; r0 += 16) {
      Philox64(static_cast<std::uint32_t>(query + r0), static_cast<std::uint32_t>(block),
               stream.counter[0], stream.counter[1], {stream.key[0], stream.key[1]}, words);
      for (index c = 0; c < 8; ++c) {
        if (first + c < 0 || first + c >= keys) continue;
        const int shift = static_cast<int>(c % 2 * 16);
        auto [kept, tie] = CompareBits(words + c / 2 * 16, shift, rule.threshold);
        // One score in 65536: 32 more bits are compared with the rest of the probability.
        for (index r = 0; tie && rule.rest > 0 && r < 16; ++r) {
          const bool drop = drops(rule, stream, query + r0 + r, block * 8 + c);
          kept &= ~(std::uint64_t{drop} << r);
        }
        bits[first + c] |= kept << r0;
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_ATTENTION_DROPOUT_INL_H_
