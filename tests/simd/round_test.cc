// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "fovea/base/precision.h"
#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/round_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/round-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

void RoundAll(const float* x, index n, float* y) {
  ForEachLane<float>(
      n, [=](auto lanes, index i) { lanes.Store(RoundToBFloat16(lanes.Load(x + i)), y + i); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(RoundAll);

// Every upper half, with lower halves astride the tie: all exponents, NaN and infinity.
TEST(RoundToBFloat16, IsTheConversionOfOneValue) {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000u; upper += 7) {
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  values.push_back(std::bit_cast<float>(0x7f7fffffu));
  values.push_back(std::bit_cast<float>(0xff800001u));
  for_each_isa([&] {
    std::vector<float> rounded(values.size());
    FOVEA_DISPATCH(RoundAll)(values.data(), static_cast<index>(values.size()), rounded.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(rounded[i]),
                std::bit_cast<std::uint32_t>(to_float(to_bfloat16(values[i]))))
          << std::bit_cast<std::uint32_t>(values[i]);
    }
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE
