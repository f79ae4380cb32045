// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time_parts.h"

#include <gmock/gmock.h>

namespace fovea {
namespace {

TEST(RunTimeParts, ReckonWhatDoesNotFit) {
  TrainOptions recipe;
  const TimedRun run{.recipe = recipe,
                     .cost = {.parameters = 10, .updates = 10, .flops_per_update = 1e9},
                     .updates_to_come = [] { return 10.0; },
                     .fits = [] { return false; },
                     .with_objective = [](const auto&) { FAIL() << "it must not be made"; }};
  const RunTime time = estimate_time(Context(1), run, {});
  EXPECT_THAT(time.basis, testing::HasSubstr("GFLOP/s"));
  EXPECT_GT(time.seconds, 0);
  recipe.stop_after = "1h";
  EXPECT_EQ(estimate_time(Context(1), run, {.seconds = 600}).seconds, 3000);
}

TEST(RunTimeParts, CountEvaluationsAfterThoseThatWereDone) {
  TrainOptions recipe;
  recipe.eval_every = "10u";
  EXPECT_EQ(evaluations_to_come(recipe, 95, 7, 0), 10);  // the last one at the end
  EXPECT_EQ(evaluations_to_come(recipe, 95, 7, 25), 8);
  EXPECT_EQ(evaluations_to_come(recipe, 95, 7, 200), 0);
  recipe.eval_every = "1e";
  EXPECT_EQ(evaluations_to_come(recipe, 21, 7, 7), 2);
}

}  // namespace
}  // namespace fovea
