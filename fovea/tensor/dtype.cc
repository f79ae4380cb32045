// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/dtype.h"

#include <bit>
#include <cmath>

namespace fovea {

namespace {

struct DTypeInfo {
  std::string_view name;
  index byte_size;
};
constexpr DTypeInfo kInfo[] = {{"float32", 4}, {"bfloat16", 2}, {"int32", 4},
                               {"float64", 8}, {"int64", 8},    {"uint8", 1}};

// Truncates x to a float32 towards zero, and sets its last bit when something was cut
// off ("round to odd"). A second rounding to fewer bits then gives what rounding once would give.
float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(x)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace

std::string_view to_string(DType dtype) { return kInfo[static_cast<int>(dtype)].name; }

index byte_size(DType dtype) { return kInfo[static_cast<int>(dtype)].byte_size; }

float to_float(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

BFloat16 to_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  const std::uint32_t tie_to_even = (bits >> 16) & 1u;
  return {static_cast<std::uint16_t>((bits + 0x7fffu + tie_to_even) >> 16)};
}

BFloat16 to_bfloat16(double x) { return to_bfloat16(round_to_odd(x)); }

}  // namespace fovea
