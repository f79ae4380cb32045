// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace fovea::testing {
namespace {

// Every item once; what was announced comes next on the same thread.
TEST(ForEachAhead, DoesEachItemOnceAndWhatItAnnounced) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const index items : {0, 1, 2, 7, 64}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(items));
      std::atomic<int> wrong{0}, announced{0};
      for_each_ahead(Context(threads), items, [&](index item, index next) {
        static thread_local index expected = -1;
        ++times[static_cast<std::size_t>(item)];
        if (expected >= 0 && expected != item) ++wrong;
        if (next >= 0) ++announced;
        expected = next;
      });
      for (const auto& count : times) EXPECT_EQ(count, 1);
      EXPECT_EQ(wrong, 0);
      EXPECT_GT(announced, items >= 3 * threads ? 0 : -1);
    }
  }
}

}  // namespace
}  // namespace fovea::testing
