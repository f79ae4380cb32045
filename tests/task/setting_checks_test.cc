// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/setting_checks.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(SettingChecks, NameTheOption) {
  require_storable("评论.tsv", "train");
  EXPECT_THROWS(require_storable("a\xff.tsv", "train"), kOptionValue, "--train: ");
  require_together(true, "--a, --b", "never said", "");
  EXPECT_THROWS(require_together(false, "--a, --b", "not both", "leave one out"), kOptionValue,
                "--a, --b: not both");
}

}  // namespace
}  // namespace fovea
