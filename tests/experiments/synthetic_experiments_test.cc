// SPDX-License-Identifier: Apache-2.0
// P8 and E12 with a few updates: every run is there and every number is a share. What they show
// with all their updates is in docs/REPRODUCE.md.
#include <gtest/gtest.h>

#include "fovea/nn/options.h"
#include "tests/experiments/support.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

void expect_shares(const std::vector<ReproduceRow>& rows, const std::string& experiment) {
  for (const ReproduceRow& row : rows) {
    EXPECT_EQ(row.experiment, experiment);
    EXPECT_EQ(row.metric, "accuracy");
    ASSERT_TRUE(row.ours);
    EXPECT_GE(*row.ours, 0);
    EXPECT_LE(*row.ours, 1);
  }
}

TEST(SyntheticExperiments, OrderRunsEveryPosition) {
  const TestFolder folder;
  Measured measured;
  reproduce_order(Context(2), {.data = {}, .output = folder.path(), .seeds = 1, .share = 0.002},
                  measured.observer());
  EXPECT_EQ(measured.rows.size(), enum_names(PositionKind()).size());
  expect_shares(measured.rows, "P8");
}

TEST(SyntheticExperiments, RecallRunsEveryModelAtEveryDistanceAndDrawsIt) {
  const TestFolder folder;
  Measured measured;
  reproduce_recall(Context(2), {.data = {}, .output = folder.path(), .seeds = 1, .share = 0.002},
                   measured.observer());
  EXPECT_EQ(measured.rows.size(), 25u);
  expect_shares(measured.rows, "E12");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "E12.svg"));
}

}  // namespace
}  // namespace fovea
