// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/query_tiles.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/attention/support/call.h"

namespace fovea::detail {
namespace {

// Every query tile of every sequence and head exactly once, whatever the grouping.
TEST(QueryTiles, CoverEveryQueryOnce) {
  const std::vector<Sequence> sequences = {{.number = 0, .queries = 130, .keys = 10},
                                           {.number = 1, .queries = 0, .keys = 10},
                                           {.number = 2, .queries = 1, .keys = 10},
                                           {.number = 3, .queries = 64, .keys = 0}};
  for (const double flops : {0.0, 1e3, 3e5, 1e9}) {
    const QueryTiles tiles(sequences, 3, flops, 2);
    std::map<std::tuple<index, index, index>, int> seen;
    for (index item = 0; item < tiles.items(); ++item) {
      tiles.for_each_run(item, [&](const QueryRun& run) {
        EXPECT_EQ(run.query_begin % kLaneTile, 0);
        EXPECT_LE(run.query_end, run.sequence.queries);
        for (index i = run.query_begin; i < run.query_end; ++i) {
          ++seen[{run.sequence.number, run.head, i}];
        }
      });
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(3 * (130 + 0 + 1 + 64)));
    for (const auto& [place, times] : seen) EXPECT_EQ(times, 1);
    EXPECT_EQ(seen.count({0, 2, 129}), 1u);
  }
}

// The run that a run is told of is the one that follows, here or in the next item.
TEST(QueryTiles, TellWhatFollows) {
  const std::vector<Sequence> sequences = {{.number = 0, .queries = 130, .keys = 10},
                                           {.number = 1, .queries = 70, .keys = 10}};
  using Place = std::tuple<index, index, index, index>;
  const auto place = [](const QueryRun& run) {
    return Place{run.sequence.number, run.head, run.query_begin, run.query_end};
  };
  for (const double flops : {3e5, 1e9}) {
    const QueryTiles tiles(sequences, 3, flops, 2);
    std::vector<Place> runs, nexts;
    for (index item = 0; item < tiles.items(); ++item) {
      const index then = item + 1 < tiles.items() ? item + 1 : -1;
      tiles.for_each_run(item, then, [&](const QueryRun& run, const QueryRun* next) {
        runs.push_back(place(run));
        if (next != nullptr) nexts.push_back(place(*next));
      });
    }
    EXPECT_EQ(nexts, std::vector<Place>(runs.begin() + 1, runs.end()));
  }
}

TEST(QueryTiles, NothingIsNoItem) {
  EXPECT_EQ(QueryTiles({}, 4, 1.0, 2).items(), 0);
  const std::vector<Sequence> empty = {{.queries = 0, .keys = 5}};
  EXPECT_EQ(QueryTiles(empty, 4, 1.0, 2).items(), 0);
}

// Large tiles are handed over alone, small ones in groups.
TEST(QueryTiles, GroupsPayForAHandOver) {
  const std::vector<Sequence> sequences = {{.queries = 6400, .keys = 64}};
  EXPECT_EQ(QueryTiles(sequences, 1, 1e9, 64).items(), 100);
  EXPECT_LE(QueryTiles(sequences, 1, 1e4, 64).items(), 2);
}

// Tiles of a head share its keys, but each thread has several items.
TEST(QueryTiles, GroupsLeaveItemsForEveryThread) {
  const std::vector<Sequence> sequences = {{.queries = 6400, .keys = 64}};
  for (const int threads : {1, 2, 3, 8}) {
    const index items = QueryTiles(sequences, 1, 1e9, threads).items();
    EXPECT_GE(items, 8 * threads);
    EXPECT_LE(items, std::max(100 / 8 + 1, 16 * threads));
  }
}

}  // namespace
}  // namespace fovea::detail
