// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <array>
#include <cstdint>

#include "fovea/base/random.h"
#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/philox_test.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/philox-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

void Words64(PhiloxCounter c, PhiloxKey key, std::uint32_t* words) {
  Philox64(c[0], c[1], c[2], c[3], key, words);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(Words64);

TEST(Philox64, HasTheWordsOfTheScalarFunction) {
  for_each_isa([] {
    Random random(1, RandomUse::kTest);
    for (int trial = 0; trial < 200; ++trial) {
      const PhiloxCounter c{random.next_u32(), random.next_u32(), random.next_u32(),
                            random.next_u32()};
      const PhiloxKey key{random.next_u32(), random.next_u32()};
      alignas(64) std::array<std::uint32_t, 64> words;
      FOVEA_DISPATCH(Words64)(c, key, words.data());
      for (std::uint32_t l = 0; l < 16; ++l) {
        const PhiloxCounter expected = philox4x32({c[0] + l, c[1], c[2], c[3]}, key);
        for (std::uint32_t k = 0; k < 4; ++k) ASSERT_EQ(words[16 * k + l], expected[k]);
      }
    }
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE
