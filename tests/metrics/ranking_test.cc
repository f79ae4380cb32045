// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ranking.h"

#include <gtest/gtest.h>

#include <vector>

#include "fovea/base/error.h"

namespace fovea {
namespace {

TEST(Ranking, NumbersByHand) {
  const std::vector<index> ranks = {1, 2, 5, 11};
  const RankingReport report = ranking_report(ranks);
  EXPECT_EQ(report.queries, 4);
  EXPECT_DOUBLE_EQ(report.mrr, (1 + 1 / 2.0 + 1 / 5.0 + 1 / 11.0) / 4);
  EXPECT_DOUBLE_EQ(report.recall_at_1, 0.25);
  EXPECT_DOUBLE_EQ(report.recall_at_5, 0.75);
  EXPECT_DOUBLE_EQ(report.recall_at_10, 0.75);
}

TEST(Ranking, IntervalsHoldTheNumbersAndHaveTheSameBitsOnAnyThreads) {
  std::vector<index> ranks;
  for (index n = 0; n < 200; ++n) ranks.push_back(1 + n % 12);
  const RankingIntervals one = ranking_intervals(Context(1), ranks);
  const RankingIntervals three = ranking_intervals(Context(3), ranks);
  EXPECT_DOUBLE_EQ(one.mrr.value, ranking_report(ranks).mrr);
  EXPECT_LT(one.mrr.low, one.mrr.value);
  EXPECT_GT(one.mrr.high, one.mrr.value);
  EXPECT_EQ(one.mrr.low, three.mrr.low);
  EXPECT_EQ(one.recall_at_10.high, three.recall_at_10.high);
}

TEST(Ranking, RefusesRanksBelowOneAndNoQueries) {
  const std::vector<index> none, zero = {0};
  EXPECT_THROW(ranking_report(none), Error);
  EXPECT_THROW(ranking_report(zero), Error);
}

}  // namespace
}  // namespace fovea
