// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fovea/base/words.h"

namespace fovea {
namespace {

TEST(Float32, SaysWhatANumberIs) {
  EXPECT_TRUE(is_finite_float32(3.4e38));
  EXPECT_TRUE(is_finite_float32(1e-200));
  EXPECT_FALSE(is_finite_float32(-1e39));
  EXPECT_EQ(why_not_float32(-1e39), "-1e+39, too large for float32");
  EXPECT_EQ(why_not_float32(std::nan("")), "NaN");
  EXPECT_EQ(why_not_float32(-std::numeric_limits<double>::infinity()), "infinity");
}

}  // namespace
}  // namespace fovea
