// SPDX-License-Identifier: Apache-2.0
// The precisions in which values are kept and products are computed: float32 and bfloat16.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace fovea {

/// The upper half of a float32: 8 bits of exponent, 7 of fraction.
struct BFloat16 {
  std::uint16_t bits = 0;

  friend bool operator==(BFloat16, BFloat16) = default;
};

/// Exact: every bfloat16 is a float32. NaN payloads and denormals are kept.
inline float to_float(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
/// Rounds to nearest, ties to even, denormals included. A value that is too large becomes infinite.
/// A NaN stays a NaN: it is made quiet, its sign and upper payload are kept.
inline BFloat16 to_bfloat16(float x) {
  // Without a branch, so that loops over rows become vectors.
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t tie_to_even = (bits >> 16) & 1u;
  const std::uint32_t rounded = is_nan ? bits | 0x400000u : bits + 0x7fffu + tie_to_even;
  return {static_cast<std::uint16_t>(rounded >> 16)};
}
/// As above, rounded once: going through float32 could round a double twice.
BFloat16 to_bfloat16(double x);

/// Two neighbours along a sum, the first in the lower half: what one lane of a product of bfloat16
/// reads (simd/pairs-inl.h).
using BFloat16Pair = std::uint32_t;

/// The type in which sums, and all that is not an operand of a product, are kept.
template <class T>
using Wide = std::conditional_t<std::is_same_v<std::remove_const_t<T>, BFloat16>, float,
                                std::remove_const_t<T>>;

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(BFloat16 x) { return to_float(x); }

/// The operand of one step of a product's sum: a value, or a pair of values.
template <class T>
using Operand = std::conditional_t<std::is_same_v<T, BFloat16>, BFloat16Pair, T>;
/// The values in it.
template <class T>
inline constexpr std::int64_t kOperandValues = std::is_same_v<T, BFloat16> ? 2 : 1;

/// kBFloat16: the operands of products are rounded to bfloat16, and all else stays float32 (but for
/// the results of attention in training, docs/precision.md): sums, results, norms, softmax, losses,
/// weights and the optimizer.
enum class Precision { kFloat32, kBFloat16 };

/// By which options and files know them, in the order of the enum.
inline constexpr std::array<std::string_view, 2> kPrecisionNames = {"float32", "bf16"};

constexpr std::string_view precision_name(Precision precision) {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

}  // namespace fovea
