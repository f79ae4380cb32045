// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

const float kKeys[] = {1, 2, 3, 4, 5, 6}, kValues[] = {7, 8, 9};

Variable keys(Tape& tape, index rows) { return tape.constant(Rows<const float>(kKeys, rows, 2)); }
Variable values(Tape& tape, index rows) {
  return tape.constant(Rows<const float>(kValues, rows, 1));
}

TEST(KvCache, GrowsUpToItsCapacity) {
  Tape tape(Context(1), TapeMode::kInference);
  KvCache cache({.capacity = 3, .keys = 2, .values = 1});
  cache.append(keys(tape, 2), values(tape, 2));
  cache.append(keys(tape, 1), values(tape, 1));
  EXPECT_EQ(cache.size(), 3);
  EXPECT_THAT(to_vector(cache.keys(tape).value<float>()), ElementsAre(1, 2, 3, 4, 1, 2));
  EXPECT_THAT(to_vector(cache.values(tape).value<float>()), ElementsAre(7, 8, 7));
  EXPECT_THROWS(cache.append(keys(tape, 1), values(tape, 1)), kShape, "do not fit beside 3 of 3");
  cache.clear();
  cache.append(keys(tape, 1), values(tape, 1));
  EXPECT_THAT(to_vector(cache.keys(tape).value<float>()), ElementsAre(1, 2));
}

TEST(KvCache, NamesRowsOfAnotherWidth) {
  Tape tape(Context(1), TapeMode::kInference);
  KvCache cache({.capacity = 3, .keys = 2, .values = 2});
  EXPECT_THROWS(cache.append(keys(tape, 1), values(tape, 1)), kShape, "values [1, 1]");
}

}  // namespace
}  // namespace fovea
