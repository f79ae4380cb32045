// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

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
  EXPECT_EQ(cache.tokens(), 3);
  EXPECT_THAT(to_vector(cache.keys(tape).value<float>()), ElementsAre(1, 2, 3, 4, 1, 2));
  EXPECT_THAT(to_vector(cache.values(tape).value<float>()), ElementsAre(7, 8, 7));
  EXPECT_THROWS(cache.append(keys(tape, 1), values(tape, 1)), kShape, "do not fit beside 3 of 3");
  cache.clear();
  cache.append(keys(tape, 1), values(tape, 1));
  EXPECT_THAT(to_vector(cache.keys(tape).value<float>()), ElementsAre(1, 2));
}

// Rows of which no later query sees one go, in blocks of 128.
TEST(KvCache, DropsWhatIsOutsideItsWindow) {
  Tape tape(Context(1), TapeMode::kInference);
  KvCache cache({.capacity = 5000, .keys = 1, .values = 1, .window = 10});
  EXPECT_EQ(cache.room(), 10 + 127 + KvCache::kMostNewRows);
  std::vector<float> rows(200);
  for (index first = 0; first < 4000; first += 200) {
    std::iota(rows.begin(), rows.end(), static_cast<float>(first));
    const Variable x = tape.constant(Rows<const float>(rows.data(), 200, 1));
    cache.append(x, x);
    EXPECT_EQ(cache.tokens(), first + 200);
    EXPECT_EQ(cache.dropped() % 128, 0);
    EXPECT_LE(cache.dropped(), std::max<index>(0, first - 10));
    EXPECT_LE(cache.tokens() - cache.dropped(), cache.room());
    const auto held = to_vector(cache.keys(tape).value<float>());
    for (std::size_t n = 0; n < held.size(); ++n) {
      ASSERT_EQ(held[n], static_cast<float>(cache.dropped() + static_cast<index>(n)));
    }
  }
  EXPECT_GT(cache.dropped(), 3500);
  const std::vector<float> many(500);
  const Variable x = tape.constant(Rows<const float>(many.data(), 500, 1));
  EXPECT_THROWS(cache.append(x, x), kShape, "append at most 256");
}

TEST(KvCache, WithAWideWindowIsAsLongAsItsCapacity) {
  EXPECT_EQ(KvCache::room_needed(64, 0), 64);
  EXPECT_EQ(KvCache::room_needed(64, 16), 64);
  EXPECT_EQ(KvCache::room_needed(4096, 64), 64 + 127 + KvCache::kMostNewRows);
  EXPECT_EQ(KvCache::room_needed(4096, 1 << 30), 4096);
}

TEST(KvCache, NamesRowsOfAnotherWidth) {
  Tape tape(Context(1), TapeMode::kInference);
  KvCache cache({.capacity = 3, .keys = 2, .values = 2});
  EXPECT_THROWS(cache.append(keys(tape, 1), values(tape, 1)), kShape, "values [1, 1]");
}

}  // namespace
}  // namespace fovea
