// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "fovea/model/text_batch.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(FiniteLogits, RefusesWhatIsNoNumber) {
  Tape tape(Context(1), TapeMode::kInference);
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    const Variable x = tape.result(2, 3, type);
    with_type(type, [&]<class T>(std::type_identity<T>) {
      const Rows<T> rows = x.value<T>();
      for (index n = 0; n < 6; ++n) rows[n / 3][n % 3] = static_cast<T>(n);
      EXPECT_NO_THROW(require_finite(x, "a score"));
      for (const T bad :
           {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
        rows[1][2] = bad;
        EXPECT_THROWS(require_finite(x, "a score"), kModelDamaged, "a score is not finite");
      }
    });
  }
}

}  // namespace
}  // namespace fovea
