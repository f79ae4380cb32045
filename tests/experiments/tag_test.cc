// SPDX-License-Identifier: Apache-2.0
// E8: the data that it needs. What it does with data is in tag_runs_test.cc.
#include <gtest/gtest.h>

#include "tests/experiments/support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(ReproduceTag, SaysWhichFileItNeeds) {
  const TestFolder folder;
  Measured measured;
  EXPECT_THROWS(reproduce_tag(Context(1), {.data = folder.path(), .output = folder.path()},
                              measured.observer()),
                kMissingInput, "wnut17/train.conll");
}

}  // namespace
}  // namespace fovea
