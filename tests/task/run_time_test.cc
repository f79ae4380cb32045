// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time.h"

#include <gmock/gmock.h>

#include "fovea/base/clock.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

using testing::HasSubstr;

RunTime time_of(const LanguageModelSettings& settings) {
  return estimate_run_time(Context(1), prepare_run(settings));
}

// A wide margin: others use the machine, too.
TEST(RunTime, IsAboutWhatTheRunTakes) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = settings.recipe.save_every = "600u";
  const RunTime time = time_of(settings);
  EXPECT_THAT(time.basis, HasSubstr("updates were tried"));
  const double begin = monotonic_seconds();
  TrainingObserver silent;
  train_language_model(Context(1), prepare_run(settings), folder / "m", {}, silent);
  const double taken = monotonic_seconds() - begin;
  EXPECT_GT(time.seconds, taken / 5);
  EXPECT_LT(time.seconds, taken * 5);
}

TEST(RunTime, GrowsWithTheRunAndWithItsEvaluations) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.width = 1536;  // too long to be tried out: a function of the peak alone
  settings.model.block = 64;
  settings.text.batch_size = 64;
  settings.text.valid_fraction = 0;
  settings.recipe.stop_after = "100u";
  const RunTime once = time_of(settings);
  EXPECT_THAT(once.basis, HasSubstr("GFLOP/s"));
  settings.recipe.stop_after = "1000u";
  EXPECT_GT(time_of(settings).seconds, 5 * once.seconds);
  settings.text.valid_fraction = 0.5;
  settings.recipe.eval_every = "1u";
  settings.recipe.stop_after = "100u";
  EXPECT_GT(time_of(settings).seconds, once.seconds);
}

TEST(RunTime, OfHoursIsThose) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "30m";
  const RunTime time = time_of(settings);
  EXPECT_EQ(time.seconds, 1800);
  EXPECT_EQ(time.basis, "as --stop-after says");
}

}  // namespace
}  // namespace fovea
