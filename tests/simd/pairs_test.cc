// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>

#include "fovea/base/memory.h"
#include "fovea/base/precision.h"
#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/pairs_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// False if this instruction set has no pairs.
bool KeepAll([[maybe_unused]] Rows<BFloat16Pair> pairs,
             [[maybe_unused]] const std::uint64_t* bits) {
#if FOVEA_PAIRS
  KeepInPairs(pairs, bits);
  return true;
#else
  return false;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(KeepAll);

TEST(KeepInPairs, ClearsTheValuesWhoseBitIsZero) {
  for_each_isa([] {
    constexpr index kRows = 3, kColumns = 48;
    const std::uint64_t bits[2 * kRows] = {0x123456789abcdef0u, ~std::uint64_t{0},   0,
                                           0xfedcba9876543210u, 0x8000800080008000u, 1};
    Scratch scratch;
    const Rows<BFloat16Pair> pairs(scratch.allocate<BFloat16Pair>(kRows * kColumns), kRows,
                                   kColumns);
    const auto pair = [](index r, index c) {
      return static_cast<BFloat16Pair>(0x7fc00001u + 0x10000u * static_cast<unsigned>(c) +
                                       static_cast<unsigned>(r));
    };
    for (index r = 0; r < kRows; ++r) {
      for (index c = 0; c < kColumns; ++c) pairs[r][c] = pair(r, c);
    }
    if (!FOVEA_DISPATCH(KeepAll)(pairs, bits)) return;
    for (index r = 0; r < kRows; ++r) {
      for (index c = 0; c < kColumns; ++c) {
        const auto kept = [&](index row) { return (bits[row] >> c & 1) != 0; };
        BFloat16Pair expected = 0;
        if (kept(2 * r)) expected |= pair(r, c) & 0xffffu;
        if (kept(2 * r + 1)) expected |= pair(r, c) & 0xffff0000u;
        ASSERT_EQ(pairs[r][c], expected) << r << ", " << c;
      }
    }
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE
