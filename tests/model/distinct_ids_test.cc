// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/model/text_encoder.h"

namespace fovea {
namespace {

struct Found {
  std::vector<std::int32_t> kept, places;
};

Found found(const std::vector<std::int32_t>& ids) {
  Tape tape(Context(1), TapeMode::kInference);
  const DistinctIds distinct = distinct_ids(tape, {ids.data(), static_cast<index>(ids.size())});
  return {{distinct.kept.begin(), distinct.kept.end()},
          {distinct.places.begin(), distinct.places.end()}};
}

TEST(DistinctIds, KeepsEachInTheOrderOfTheFirst) {
  const Found of = found({7, 3, 7, 0, 3, 9});
  EXPECT_EQ(of.kept, (std::vector<std::int32_t>{7, 3, 0, 9}));
  EXPECT_EQ(of.places, (std::vector<std::int32_t>{0, 1, 0, 2, 1, 3}));
}

TEST(DistinctIds, OfNothingNothing) {
  EXPECT_TRUE(found({}).kept.empty());
  EXPECT_TRUE(found({}).places.empty());
}

// Whatever they are: what reads the table checks them.
TEST(DistinctIds, TakesEveryNumber) {
  const std::int32_t least = std::numeric_limits<std::int32_t>::min(),
                     most = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(found({-1, most, least, -1, most}).kept, (std::vector<std::int32_t>{-1, most, least}));
}

TEST(DistinctIds, GivesBackWhatItWasGiven) {
  Random random(5, RandomUse::kTest);
  for (const std::uint64_t words : {1, 2, 50, 3000}) {
    std::vector<std::int32_t> ids;
    for (index n = 0; n < 2000; ++n) ids.push_back(static_cast<std::int32_t>(random.below(words)));
    const Found of = found(ids);
    for (std::size_t n = 0; n < ids.size(); ++n) {
      ASSERT_EQ(of.kept[static_cast<std::size_t>(of.places[n])], ids[n]);
    }
    auto once = of.kept;
    std::sort(once.begin(), once.end());
    EXPECT_EQ(std::adjacent_find(once.begin(), once.end()), once.end());
  }
}

}  // namespace
}  // namespace fovea
