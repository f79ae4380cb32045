// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time.h"

#include <gmock/gmock.h>

#include "fovea/base/machine.h"
#include "fovea/base/sanitizer.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

using testing::HasSubstr;

RunTime time_of(const LanguageModelSettings& settings) {
  return estimate_run_time(Context(1), prepare_run(settings));
}

TEST(RunTime, OfAShortUpdateIsTriedOut) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "600u";
  const RunTime time = time_of(settings);
  EXPECT_THAT(time.basis, HasSubstr("updates were tried"));
  EXPECT_GT(time.seconds, 0);
}

TEST(RunTime, OfALongUpdateIsReckoned) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.width = 1536;
  settings.model.block = 64;
  settings.text.batch_size = 64;
  settings.recipe.stop_after = "100u";
  const RunTime time = time_of(settings);
  EXPECT_THAT(time.basis, HasSubstr("GFLOP/s"));
  EXPECT_GT(time.seconds, 0);
}

double to_come(const LanguageModelSettings& settings, index done = 0) {
  return updates_to_come(prepare_run(settings), {.step = done});
}

TEST(UpdatesToCome, AreThoseOfTheRunAndOfItsEvaluations) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.valid_fraction = 0;
  settings.recipe.stop_after = "100u";
  EXPECT_EQ(to_come(settings), 100);
  settings.recipe.stop_after = "1000u";
  EXPECT_EQ(to_come(settings), 1000);
  settings.text.valid_fraction = 0.5;
  settings.recipe.eval_every = "1000u";
  const double once = to_come(settings) - 1000;
  EXPECT_GT(once, 0);
  settings.recipe.eval_every = "250u";
  EXPECT_NEAR(to_come(settings) - 1000, 4 * once, 1e-9);
}

TEST(UpdatesToCome, OfAResumedRunAreWhatIsLeft) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.stop_after = "40000u";
  settings.recipe.eval_every = "1000u";
  EXPECT_NEAR(to_come(settings, 39000), to_come(settings) / 40, 1e-6);
  EXPECT_EQ(to_come(settings, 40000), 0);
  EXPECT_EQ(to_come(settings, 50000), 0);
}

// 21 million parameters, sixteen tokens: hardly any FLOPs.
TEST(RunTime, OfManyParametersIsToldWithoutMakingThem) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.width = 512;
  settings.model.layers = 7;
  settings.text.batch_size = 1;
  settings.text.valid_fraction = 0;
  settings.recipe.stop_after = "100u";
  const LanguageModelRun run = prepare_run(settings);
  [[maybe_unused]] const std::int64_t before = peak_memory_bytes();
  const RunTime time = estimate_run_time(Context(1), run);
  EXPECT_THAT(time.basis, HasSubstr("ns a parameter"));
  // The sample takes 32 MiB; the model, its gradients and moments would take 340.
#if !defined(FOVEA_THREAD_SANITIZER)  // which keeps a multiple of it beside
  EXPECT_LT(peak_memory_bytes() - before, 100 << 20);
#endif
  // 21 million parameters of 28 bytes at a terabyte a second, a hundred times.
  EXPECT_GT(time.seconds, 0.06);
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
