// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw8.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"
#include "fovea/base/random.h"
#include "fovea/kernel/adamw_values.h"
#include "fovea/kernel/segments.h"

#ifndef FOVEA_KERNEL_ADAMW8_TYPES_
#define FOVEA_KERNEL_ADAMW8_TYPES_
namespace fovea {
namespace detail {

// A code is the upper bits of a float in [0, 1]: exponent and 3 bits of fraction, counted so that
// the largest code is 1, and 0 is 0.
inline constexpr int kDroppedBits = 20;
inline constexpr std::uint32_t kBitsOfOne = 127u << 3;

/// Of m: a code in 7 bits, and the sign; of v: 8 bits.
struct MomentForm {
  std::uint32_t largest;  // code
  bool is_signed;

  constexpr std::uint32_t base() const { return kBitsOfOne - largest; }
  constexpr std::uint32_t smallest_bits() const { return (base() + 1) << kDroppedBits; }
};
inline constexpr MomentForm kFormOfM{127, true}, kFormOfV{255, false};

/// The codes of a block, their scale and their values.
struct MomentBlock {
  std::uint8_t* codes;
  float* scale;
  float* values;
};

/// Values [first, first + n) of a slot, n <= kMomentBlock.
struct MomentBlocks {
  MomentBlock m, v;
  index first, n;
};

}  // namespace detail
}  // namespace fovea
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/adamw8.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/philox-inl.h"
#include "fovea/simd/simd-inl.h"

// The loops are plain: the compiler turns them into vectors of each instruction set. No operation
// of theirs is contracted, so all instruction sets give the same codes.
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <bool kIsM>
void DecodeMoments(const detail::MomentBlock& block, index n) {
  constexpr detail::MomentForm kForm = kIsM ? detail::kFormOfM : detail::kFormOfV;
  const float scale = *block.scale;
  float* const values = block.values;
  const std::uint8_t* const codes = block.codes;
  for (index i = 0; i < n; ++i) {
    const std::uint32_t code = codes[i], size = code & kForm.largest;
    const std::uint32_t bits = size == 0 ? 0 : (size + kForm.base()) << detail::kDroppedBits;
    const std::uint32_t sign = kForm.is_signed ? (code >> 7) << 31 : 0;
    values[i] = std::bit_cast<float>(bits | sign) * scale;
  }
}

// Of `words`, one a value, the lower half rounds m, the upper half v.
template <bool kIsM>
void EncodeMoments(const detail::MomentBlock& block, index n, const std::uint32_t* words) {
  constexpr detail::MomentForm kForm = kIsM ? detail::kFormOfM : detail::kFormOfV;
  constexpr std::uint32_t kSignBit = 1u << 31, kInfinity = 0xFFu << 23;
  const float* const values = block.values;
  std::uint32_t most = 0;
  for (index i = 0; i < n; ++i) {
    const std::uint32_t size = std::bit_cast<std::uint32_t>(values[i]) & ~kSignBit;
    most = size > most ? size : most;
  }
  most = most < kInfinity ? most : kInfinity - 1;  // a square may overflow
  const float scale = std::bit_cast<float>(most);
  *block.scale = scale;
  std::uint8_t* const codes = block.codes;
  if (most == 0) {
    std::memset(codes, 0, static_cast<std::size_t>(n));
    return;
  }
  const float smallest = std::bit_cast<float>(kForm.smallest_bits());
  for (index i = 0; i < n; ++i) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(values[i]), size = all & ~kSignBit;
    const float part = std::bit_cast<float>(size < most ? size : most) / scale;
    const std::uint32_t random = kIsM ? words[i] & 0xFFFF : words[i] >> 16;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(part) + (random << 4);
    const std::uint32_t above = (bits >> detail::kDroppedBits) - kForm.base();
    const bool up = kIsM ? static_cast<float>(random) * smallest < part * 65536.0f : part > 0;
    const std::uint32_t code = part < smallest ? std::uint32_t{up} : above;
    const std::uint32_t sign = kForm.is_signed && code != 0 ? (all >> 31) << 7 : 0;
    codes[i] = static_cast<std::uint8_t>(code | sign);
  }
}

void DecodeBlocks(const detail::MomentBlocks& blocks) {
  DecodeMoments<true>(blocks.m, blocks.n);
  DecodeMoments<false>(blocks.v, blocks.n);
}

// The word of value i of a slot is one of the counter 16 (i / 64) + i % 16, as in masks of dropout.
void EncodeBlocks(const detail::MomentBlocks& blocks, PhiloxKey key) {
  HWY_ALIGN std::uint32_t words[kMomentBlock];
  for (index i = 0; i < blocks.n; i += 64) {
    const auto counter = static_cast<std::uint64_t>(blocks.first + i) / 4;
    Philox64(static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0,
             key, words + i);
  }
  EncodeMoments<true>(blocks.m, blocks.n, words);
  EncodeMoments<false>(blocks.v, blocks.n, words);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(DecodeBlocks);
HWY_EXPORT(EncodeBlocks);

void check_moments8(std::size_t s, const char* name, const Moments8& moments, index size) {
  check(moments.codes.size == size && moments.scales.size == moment_blocks(size),
        "adamw8: {} of slot {} must have {} codes and {} scales; it has {} and {}", name, s, size,
        moment_blocks(size), moments.codes.size, moments.scales.size);
}

index check_slots8(std::span<const AdamW8Slot> slots) {
  index all = 0;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const AdamW8Slot& slot = slots[s];
    const index size = slot.value.size;
    check(slot.gradient.size == size,
          "adamw8: value and gradient of slot {} must have one size; they have {}, {}", s, size,
          slot.gradient.size);
    check_moments8(s, "m", slot.m, size);
    check_moments8(s, "v", slot.v, size);
    all += size;
  }
  return all;
}

// Calls f(blocks) for the blocks of values [first, first + n) of a slot, whose moments are at m and
// v; `first` is a multiple of kMomentBlock.
template <class F>
void for_each_block(const AdamW8Slot& slot, index first, index n, float* m, float* v, F&& f) {
  for (index i = 0; i < n; i += kMomentBlock) {
    const index at = first + i, block = at / kMomentBlock;
    f(detail::MomentBlocks{{slot.m.codes.data + at, slot.m.scales.data + block, m + i},
                           {slot.v.codes.data + at, slot.v.scales.data + block, v + i},
                           at,
                           std::min(kMomentBlock, n - i)});
  }
}

PhiloxKey rounding_key(index step, std::uint32_t number) {
  constexpr std::uint32_t kUse = 0x38776461;  // no other stream of random numbers has it
  const auto t = static_cast<std::uint64_t>(step);
  const PhiloxCounter words = philox4x32(
      {static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(t >> 32), number, kUse}, {0, 0});
  return {words[0], words[1]};
}

}  // namespace

void adamw8(const Context& ctx, std::span<const AdamW8Slot> slots, const AdamWStep& step) {
  constexpr double kCost = 16;  // operations for one element
  constexpr index kSegment = 16 * kMomentBlock;
  const index all = check_slots8(slots);
  if (step.step < 1)
    fail(ErrorCode::kOptionValue, "adamw8: step must be >= 1; it is {}", step.step);
  Scratch scratch;
  const ArraySegments segments(scratch, std::ssize(slots), kSegment, [&](index s) {
    return slots[static_cast<std::size_t>(s)].value.size;
  });
  const auto decode = FOVEA_DISPATCH(DecodeBlocks);
  const auto encode = FOVEA_DISPATCH(EncodeBlocks);
  const ProfileScope scope(ctx, pass_over<float>("AdamW in 8 bits", all, 1, 4));
  ctx.for_ranges(segments.count(), kCost * kSegment, [&](index begin, index end) {
    float m[kSegment], v[kSegment];
    for (index i = begin; i < end; ++i) {
      const auto [number, first, n] = segments[i];
      const AdamW8Slot& slot = slots[static_cast<std::size_t>(number)];
      const PhiloxKey key = rounding_key(step.step, slot.number);
      for_each_block(slot, first, n, m, v, [&](const auto& blocks) { decode(blocks); });
      adamw_values<float>({{slot.value.data + first, n},
                           {slot.gradient.data + first, n},
                           {m, n},
                           {v, n},
                           slot.decay},
                          step);
      for_each_block(slot, first, n, m, v, [&](const auto& blocks) { encode(blocks, key); });
    }
  });
}

void read_moments8(const AdamW8Slot& slot, Vec<float> m, Vec<float> v) {
  check_slots8({&slot, 1});
  for_each_block(slot, 0, slot.value.size, m.data, v.data, [](const auto& blocks) {
    FOVEA_DISPATCH(DecodeBlocks)(blocks);
  });
}

}  // namespace fovea
#endif  // HWY_ONCE
