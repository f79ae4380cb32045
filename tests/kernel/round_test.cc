// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "fovea/kernel/elementwise.h"
#include "tests/isa.h"

namespace fovea {
namespace {

// Any bits, NaN and infinities among them.
std::vector<float> any_floats(index n) {
  Random random(5, RandomUse::kTest);
  std::vector<float> values;
  for (index i = 0; i < n; ++i) values.push_back(std::bit_cast<float>(random.next_u32()));
  return values;
}

TEST(RoundRows, EachValueIsThatOfOneAlone) {
  constexpr index kRows = 3, kColumns = 37, kStride = 40;
  const std::vector<float> x = any_floats(kRows * kStride);
  for_each_isa([&] {
    std::vector<BFloat16> y(kRows * kStride, BFloat16{7});
    std::vector<float> wide(kRows * kStride, 2), sum = wide;
    const Rows<BFloat16> rounded(y.data(), kRows, kColumns, kStride);
    round_rows(Context(2), {x.data(), kRows, kColumns, kStride}, rounded);
    widen_rows(Context(2), rounded, {wide.data(), kRows, kColumns, kStride});
    accumulate(Context(2), rounded, {sum.data(), kRows, kColumns, kStride});
    for (index r = 0; r < kRows; ++r) {
      for (index c = 0; c < kStride; ++c) {
        const auto at = static_cast<std::size_t>(r * kStride + c);
        if (c >= kColumns) {
          EXPECT_EQ(y[at], BFloat16{7}) << "between the rows";
          EXPECT_EQ(wide[at], 2);
          continue;
        }
        const BFloat16 expected = to_bfloat16(x[at]);
        EXPECT_EQ(y[at], expected) << x[at];
        EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[at]),
                  std::bit_cast<std::uint32_t>(to_float(expected)));
        const float added = 2 + to_float(expected);
        EXPECT_TRUE(sum[at] == added || added != added);
      }
    }
  });
}

TEST(RoundRows, ShapesMustAgree) {
  std::vector<float> x(12);
  std::vector<BFloat16> y(12);
  EXPECT_THROW(round_rows(Context(1), {x.data(), 3, 4}, {y.data(), 4, 3}), Error);
}

}  // namespace
}  // namespace fovea
