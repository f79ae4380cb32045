// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/quantized.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "fovea/base/check.h"
#include "fovea/base/precision.h"

namespace fovea {

namespace {

using Bytes = const std::uint8_t*;

constexpr int kSmall = 32, kLarge = 256;  // values of a block

template <class T>
T load(Bytes from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

float half_at(Bytes from) { return float_of_half(load<std::uint16_t>(from)); }

float real(int value) { return static_cast<float>(value); }

void widen_f32(Bytes from, float* to) { *to = load<float>(from); }
void widen_f16(Bytes from, float* to) { *to = half_at(from); }
void widen_bf16(Bytes from, float* to) { *to = to_float(BFloat16{load<std::uint16_t>(from)}); }

// ------------------------------------------------------------- blocks of 32, with one scale each

// Value i of 4 bits: the low halves of 16 bytes, then the high ones.
int nibble(Bytes q, int i) { return i < 16 ? q[i] & 15 : q[i - 16] >> 4; }

void widen_q4_0(Bytes b, float* to) {
  const float d = half_at(b);
  for (int i = 0; i < kSmall; ++i) to[i] = d * real(nibble(b + 2, i) - 8);
}

void widen_q4_1(Bytes b, float* to) {
  const float d = half_at(b), least = half_at(b + 2);
  for (int i = 0; i < kSmall; ++i) to[i] = d * real(nibble(b + 4, i)) + least;
}

// The fifth bits of 32 values are the bits of a word.
int five_bits(Bytes q, std::uint32_t fifth, int i) {
  return nibble(q, i) | static_cast<int>(fifth >> i & 1) << 4;
}

void widen_q5_0(Bytes b, float* to) {
  const float d = half_at(b);
  const auto fifth = load<std::uint32_t>(b + 2);
  for (int i = 0; i < kSmall; ++i) to[i] = d * real(five_bits(b + 6, fifth, i) - 16);
}

void widen_q5_1(Bytes b, float* to) {
  const float d = half_at(b), least = half_at(b + 2);
  const auto fifth = load<std::uint32_t>(b + 4);
  for (int i = 0; i < kSmall; ++i) to[i] = d * real(five_bits(b + 8, fifth, i)) + least;
}

void widen_q8_0(Bytes b, float* to) {
  const float d = half_at(b);
  for (int i = 0; i < kSmall; ++i) to[i] = d * real(static_cast<std::int8_t>(b[2 + i]));
}

// ----------------------------------------- blocks of 256: parts with scales that are quantised too

// Value i of 2 bits: each 32 bytes hold 128 values, 32 in each pair of bits.
int two_bits(Bytes q, int i) { return q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3; }
// Value i of 4 bits: each 32 bytes hold 64 values, the low halves first.
int four_bits(Bytes q, int i) { return q[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15; }
// Bit i: bit i / 32 of 32 bytes.
int one_bit(Bytes q, int i) { return q[i % 32] >> (i / 32) & 1; }

void widen_q2_k(Bytes b, float* to) {
  const Bytes scales = b, q = b + 16;
  const float d = half_at(b + 80), least = half_at(b + 82);
  for (int i = 0; i < kLarge; ++i) {
    const int scale = scales[i / 16];
    to[i] = d * real(scale & 15) * real(two_bits(q, i)) - least * real(scale >> 4);
  }
}

void widen_q3_k(Bytes b, float* to) {
  const Bytes high = b, q = b + 32, scales = b + 96;
  const float d = half_at(b + 108);
  for (int i = 0; i < kLarge; ++i) {
    const int k = i / 16;  // the part; its scale has 6 bits, in two places
    const int low4 = k < 8 ? scales[k] & 15 : scales[k - 8] >> 4;
    const int scale = (low4 | (scales[8 + k % 4] >> (k / 4 * 2) & 3) << 4) - 32;
    to[i] = d * real(scale) * real(two_bits(q, i) - (one_bit(high, i) != 0 ? 0 : 4));
  }
}

// Scale and minimum of part k of 32 values, 6 bits each.
struct ScaleMin {
  int scale, least;
};
ScaleMin scale_min(Bytes s, int k) {
  if (k < 4) return {s[k] & 63, s[k + 4] & 63};
  return {(s[k + 4] & 15) | (s[k - 4] >> 2 & 48), s[k + 4] >> 4 | (s[k] >> 2 & 48)};
}

template <class Value>
void widen_scaled_32(Bytes b, float* to, Value value) {
  const float d = half_at(b), least = half_at(b + 2);
  for (int k = 0; k < 8; ++k) {
    const ScaleMin part = scale_min(b + 4, k);
    const float scale = d * real(part.scale), minimum = least * real(part.least);
    for (int i = 32 * k; i < 32 * (k + 1); ++i) to[i] = scale * real(value(i)) - minimum;
  }
}

void widen_q4_k(Bytes b, float* to) {
  widen_scaled_32(b, to, [q = b + 16](int i) { return four_bits(q, i); });
}

void widen_q5_k(Bytes b, float* to) {
  widen_scaled_32(b, to, [high = b + 16, q = b + 48](int i) {
    return four_bits(q, i) | one_bit(high, i) << 4;
  });
}

void widen_q6_k(Bytes b, float* to) {
  const Bytes q = b, high = b + 128, scales = b + 192;
  const float d = half_at(b + 208);
  for (int i = 0; i < kLarge; ++i) {
    const int low = q[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int value = (low | two_bits(high, i) << 4) - 32;
    to[i] = d * real(static_cast<std::int8_t>(scales[i / 16])) * real(value);
  }
}

constexpr QuantizedType kTypes[] = {
    {0, "F32", 1, 4, widen_f32},
    {1, "F16", 1, 2, widen_f16},
    {2, "Q4_0", kSmall, 18, widen_q4_0},
    {3, "Q4_1", kSmall, 20, widen_q4_1},
    {6, "Q5_0", kSmall, 22, widen_q5_0},
    {7, "Q5_1", kSmall, 24, widen_q5_1},
    {8, "Q8_0", kSmall, 34, widen_q8_0},
    {9, "Q8_1", kSmall, 40, nullptr},
    {10, "Q2_K", kLarge, 84, widen_q2_k},
    {11, "Q3_K", kLarge, 110, widen_q3_k},
    {12, "Q4_K", kLarge, 144, widen_q4_k},
    {13, "Q5_K", kLarge, 176, widen_q5_k},
    {14, "Q6_K", kLarge, 210, widen_q6_k},
    {15, "Q8_K", kLarge, 292, nullptr},
    {16, "IQ2_XXS", kLarge, 66, nullptr},
    {17, "IQ2_XS", kLarge, 74, nullptr},
    {18, "IQ3_XXS", kLarge, 98, nullptr},
    {19, "IQ1_S", kLarge, 50, nullptr},
    {20, "IQ4_NL", kSmall, 18, nullptr},
    {21, "IQ3_S", kLarge, 110, nullptr},
    {22, "IQ2_S", kLarge, 82, nullptr},
    {23, "IQ4_XS", kLarge, 136, nullptr},
    {24, "I8", 1, 1, nullptr},
    {25, "I16", 1, 2, nullptr},
    {26, "I32", 1, 4, nullptr},
    {27, "I64", 1, 8, nullptr},
    {28, "F64", 1, 8, nullptr},
    {29, "IQ1_M", kLarge, 56, nullptr},
    {30, "BF16", 1, 2, widen_bf16},
    {34, "TQ1_0", kLarge, 54, nullptr},
    {35, "TQ2_0", kLarge, 66, nullptr},
    {39, "MXFP4", kSmall, 17, nullptr},
    {40, "NVFP4", 64, 36, nullptr},
    {41, "Q1_0", 128, 18, nullptr},
};

}  // namespace

std::span<const QuantizedType> quantized_types() { return kTypes; }

const QuantizedType* quantized_type(std::uint32_t number) {
  const auto row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                [&](const QuantizedType& type) { return type.number == number; });
  return row == std::end(kTypes) ? nullptr : &*row;
}

float float_of_half(std::uint16_t half) {
  constexpr int kMoreFraction = 13;       // bits that float has beyond half
  constexpr std::uint32_t kAllOnes = 31;  // the exponent of infinity and NaN
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 0) {  // zero, or below the normal numbers: fraction x 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign == 0 ? value : -value;
  }
  const std::uint32_t wide = exponent == kAllOnes ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << kMoreFraction);
}

void widen_blocks(const QuantizedType& type, std::span<const std::uint8_t> from,
                  std::span<float> to) {
  check(type.widen != nullptr, "values of type {} cannot be widened", type.name);
  const std::size_t blocks = to.size() / static_cast<std::size_t>(type.block);
  check(blocks * static_cast<std::size_t>(type.block) == to.size() &&
            blocks * type.bytes == from.size(),
        "{} bytes of {} are no {} values", from.size(), type.name, to.size());
  for (std::size_t n = 0; n < blocks; ++n) {
    type.widen(from.data() + n * type.bytes, to.data() + n * static_cast<std::size_t>(type.block));
  }
}

}  // namespace fovea
