// SPDX-License-Identifier: Apache-2.0
// P8 and E12 run with a few updates: every run is there, and every number is a share. What they
// show with all their updates is in docs/REPRODUCE.md.
#include "experiments/synthetic.h"

#include <gtest/gtest.h>

#include "fovea/nn/options.h"
#include "tests/experiments/support.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

// The answer is the first token.
SyntheticTask first_token() {
  SyntheticTask task{.name = "first", .vocabulary = 5, .length = 3, .make = {}};
  task.make = [](Random& random, std::vector<token>& ids) {
    for (token& id : ids) id = static_cast<token>(1 + random.below(4));
    ids.back() = 0;
    return ids.front();
  };
  return task;
}

SyntheticRun small_run() {
  SyntheticRun run;
  run.model.layers = 1;
  run.model.heads = 2;
  run.model.width = 16;
  run.updates = 300;
  run.lr = 1e-2;
  return run;
}

TEST(Synthetic, ATaskIsLearned) {
  const TestFolder folder;
  Measured measured;
  EXPECT_GT(accuracy_after_training(Context(2), first_token(), small_run(), folder.path() / "run",
                                    measured.observer()),
            0.99);
}

// Without positions the order of tokens is lost: half of the answers are guessed.
TEST(Synthetic, ATaskThatCannotBeLearnedIsNot) {
  const TestFolder folder;
  Measured measured;
  SyntheticRun run = small_run();
  run.model.position = PositionKind::kNone;
  EXPECT_LT(accuracy_after_training(Context(2), first_token(), run, folder.path() / "run",
                                    measured.observer()),
            0.8);
}

TEST(Synthetic, ARunThatWasStoppedGoesOnWithTheSameBits) {
  const TestFolder folder;
  Measured whole, stopped;
  const SyntheticRun run = small_run();
  const Context context(2);
  const double expected = accuracy_after_training(context, first_token(), run,
                                                  folder.path() / "whole", whole.observer());
  stopped.stop_after = 150;
  EXPECT_THROW(accuracy_after_training(context, first_token(), run, folder.path() / "stopped",
                                       stopped.observer()),
               ReproduceStopped);
  stopped.stop_after = 1 << 30;
  EXPECT_EQ(accuracy_after_training(context, first_token(), run, folder.path() / "stopped",
                                    stopped.observer()),
            expected);
}

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
