// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/same_fields.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(SameFiles, NameWhatWasMoved) {
  const std::vector<std::string> a = {"a"}, b = {"b"}, none;
  const std::string one = "1", two = "2";
  EXPECT_NO_THROW(require_same_files({a, none, one}, {b, none, one}));
  EXPECT_THROWS(require_same_files({a, none, one}, {b, none, two}), kConfig, "--train");
  EXPECT_THROWS(require_same_files({a, none, one}, {a, b, two}), kConfig, "--valid");
  EXPECT_THROWS(require_same_files({a, none, one}, {a, none, two}), kConfig, "has changed");
}

}  // namespace
}  // namespace fovea
