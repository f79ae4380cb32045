// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time.h"

#include <gmock/gmock.h>

#include "fovea/base/clock.h"
#include "fovea/base/machine.h"
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

// 21 million parameters, sixteen tokens: hardly any FLOPs. Measured beside a plain loop of this
// process, so that a slow machine does not count.
TEST(RunTime, OfManyParametersIsToldWithoutMakingThem) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.width = 512;
  settings.model.layers = 7;
  settings.text.batch_size = 1;
  settings.text.valid_fraction = 0;
  settings.recipe.stop_after = "100u";
  const LanguageModelRun run = prepare_run(settings);
  const std::int64_t before = peak_memory_bytes();
  const RunTime time = estimate_run_time(Context(1), run);
  EXPECT_THAT(time.basis, HasSubstr("ns a parameter"));
  // The sample takes 32 MiB; the model, its gradients and moments would take 340.
  EXPECT_LT(peak_memory_bytes() - before, 100 << 20);
  // 21 million parameters of 28 bytes at a terabyte a second, a hundred times.
  EXPECT_GT(time.seconds, 0.06);
}

TEST(RunTime, OfAResumedRunIsThatOfWhatIsLeft) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "40000u";
  settings.recipe.eval_every = "1000u";
  const LanguageModelRun run = prepare_run(settings);
  const auto seconds_after = [&](index step) {
    return estimate_run_time(Context(1), run, {.step = step}).seconds;
  };
  EXPECT_LT(seconds_after(39000), seconds_after(0) / 8);  // a fortieth; others use the machine, too
  EXPECT_EQ(seconds_after(40000), 0);
  EXPECT_EQ(seconds_after(50000), 0);
}

TEST(RunTime, OfHoursIsThose) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "30m";
  const RunTime time = time_of(settings);
  EXPECT_EQ(time.seconds, 1800);
  const LanguageModelRun run = prepare_run(settings);
  EXPECT_EQ(estimate_run_time(Context(1), run, {.seconds = 600}).seconds, 1200);
  EXPECT_EQ(estimate_run_time(Context(1), run, {.seconds = 6000}).seconds, 0);
  EXPECT_EQ(time.basis, "as --stop-after says");
}

}  // namespace
}  // namespace fovea
