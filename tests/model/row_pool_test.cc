// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fovea/base/random.h"
#include "fovea/model/target_decoder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

// Random goings-on: what each path should be is kept beside it, by the tokens written to its rows.
TEST(RowPool, PathsShareTheirBeginningsAndNothingElse) {
  RowPool pool;
  Random random(1, RandomUse::kTest);
  for (int round = 0; round < 3; ++round) {
    pool.begin(3);
    std::vector<int> table(1000);
    std::vector<std::vector<int>> written(3);
    int next_token = 0;
    for (int step = 0; step < 60; ++step) {
      std::vector<index> parents;
      for (index n = 1 + random.below(6); n > 0; --n) {
        parents.push_back(random.below(static_cast<index>(written.size())));
      }
      const auto rows = pool.extend(parents);
      std::vector<std::vector<int>> now;
      for (std::size_t i = 0; i < parents.size(); ++i) {
        now.push_back(written[static_cast<std::size_t>(parents[i])]);
        now.back().push_back(next_token);
        ASSERT_LT(rows[i], pool.room());
        table[static_cast<std::size_t>(rows[i])] = next_token++;
      }
      written = now;
      for (index i = 0; i < pool.size(); ++i) {
        std::vector<int> read;
        for (const std::int32_t row : pool.path(i)) {
          read.push_back(table[static_cast<std::size_t>(row)]);
        }
        EXPECT_EQ(read, written[static_cast<std::size_t>(i)]);
      }
    }
    // At most what six paths of 60 rows take, and what growing by half adds.
    EXPECT_LE(pool.room(), 2 * 6 * 60);
  }
}

TEST(RowPool, ParentsMustBeThere) {
  RowPool pool;
  pool.begin(1);
  const std::vector<index> parents = {1};
  EXPECT_THROWS(pool.extend(parents), kShape, "no 1 of 1");
}

}  // namespace
}  // namespace fovea
