// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "fovea/model/ngram_ids.h"

namespace fovea {
namespace {

TEST(WordHash, TellsKindsIdsAndTheirOrderApart) {
  constexpr index kRows = 1 << 30;
  std::set<std::int32_t> rows;
  for (std::uint32_t kind = 0; kind < 8; ++kind) {
    for (std::int32_t a = -1; a < 30; ++a) {
      rows.insert(WordHash(kind).with(a).row(kRows));
      for (std::int32_t b = -1; b < 30; ++b) rows.insert(WordHash(kind).with(a).with(b).row(kRows));
    }
  }
  // All differ, but for the few of 7936 that must meet by chance in 2^30 rows.
  EXPECT_GE(rows.size(), 8u * (31 + 31 * 31) - 3);
}

TEST(WordHash, StaysInTheTable) {
  for (std::int32_t id = 0; id < 1000; ++id) {
    EXPECT_EQ(WordHash(3).with(id).row(1), 0);
    EXPECT_LT(WordHash(3).with(id).row(7), 7);
  }
}

}  // namespace
}  // namespace fovea
