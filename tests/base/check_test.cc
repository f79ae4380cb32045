// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/check.h"

#include <gmock/gmock.h>

#include <cstdint>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Check, PassesInSilence) { EXPECT_NO_THROW(check(true, "never {}", 1)); }

TEST(Check, NamesWhatItWasGiven) {
  EXPECT_THROWS(check(2 + 2 == 5, "norm: gain must be [C={}]; it is [{}]", 5, 4), kShape,
                "norm: gain must be [C=5]; it is [4]");
}

TEST(Check, MayHaveAHint) {
  EXPECT_NO_THROW(check(true, Hint{"do"}, "never {}", 1));
  const auto error = error_of([] { check(false, Hint{"give {C} values"}, "must be [{}]", 5); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "must be [5]");
  EXPECT_EQ(error->hint(), "give {C} values") << "as it stands";
}

TEST(Fail, CarriesItsCode) {
  EXPECT_THROWS(fail(ErrorCode::kDiverged, "step {}: loss is not finite", 7), kDiverged,
                "step 7: loss is not finite");
}

TEST(CheckedProduct, IsTheProductUpToTheEndOfTheRange) {
  EXPECT_EQ(checked_product(INT64_C(1) << 31, INT64_C(1) << 31, "x"), INT64_C(1) << 62);
  EXPECT_EQ(checked_product(INT64_MAX, 1, "x"), INT64_MAX);
  EXPECT_EQ(checked_product(INT64_MIN, 1, "x"), INT64_MIN);
  EXPECT_EQ(checked_product(0, INT64_MAX, "x"), 0);
}

TEST(CheckedProduct, ThrowsBeyondIt) {
  EXPECT_THROWS(checked_product(INT64_C(1) << 32, INT64_C(1) << 31, "width x layers"), kShape,
                "width x layers: 4294967296 x 2147483648 is too large to count");
  EXPECT_THROWS(checked_product(INT64_MIN, -1, "x"), kShape, "too large to count");
}

}  // namespace
}  // namespace fovea
